package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/guess"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// hexCodec encodes strings of a named type in its own way.
type hexCodec struct{}

type text string

func (hexCodec) Marshal(v any) ([]byte, error) { return fmt.Appendf(nil, "%x", v.(text)), nil }
func (hexCodec) Unmarshal(data []byte, v any) error {
	_, err := fmt.Sscanf(string(data), "%x", v)
	return err
}

func TestACacheHasItsOwnSettingsAndElseTheGuards(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour, StaleFor: time.Hour, NegativeTTL: 30 * time.Minute, Jitter: -1})
	load := func(_ context.Context, id int) (text, error) {
		if id == 0 {
			return "", ErrNotFound
		}
		return "v", nil
	}
	own := newCaches(t, f, CacheConfig[int, text]{
		Name: "own", Load: load, TTL: time.Minute, StaleFor: -1, NegativeTTL: time.Minute / 2, Codec: hexCodec{},
	})[0]
	guards := newCaches(t, f, CacheConfig[int, text]{Name: "guards", Load: load})[0]
	short := newCaches(t, f, CacheConfig[int, text]{Name: "short", Load: load, TTL: time.Minute})[0]
	never := newCaches(t, f, CacheConfig[int, text]{Name: "never", Load: load, TTL: -1})[0]
	for _, c := range []*Cache[int, text]{own, guards, short, never} {
		for id := range 2 {
			_, _ = c.Get(ctx, id)
		}
	}
	f.stored()
	for key, most := range map[string]time.Duration{
		"own:1": time.Minute, "own:0": time.Minute / 2, "guards:1": 2 * time.Hour, "guards:0": 30 * time.Minute,
		"short:1": time.Hour + time.Minute, "short:0": time.Minute,
	} {
		ttl, err := f.redis.PTTL(ctx, f.value(key)).Result()
		if err != nil || ttl > most || ttl < most*3/4-time.Second/2 {
			t.Errorf("TTL of %s: %v, %v; want %v", key, ttl, err, most)
		}
	}
	expect.Equal(t, "a value that is not to be stored is there", f.exists(f.value("never:1")), false)
	raw, _ := f.redis.Get(ctx, f.value("own:1")).Result()
	expect.Equal(t, "encoded by its own codec", strings.HasSuffix(raw, "76"), true)
	for range 2 {
		v, err := own.Get(ctx, 1)
		expect.Equal(t, "decoded", fmt.Sprint(v, " ", err), "v <nil>")
	}
	expect.Equal(t, "loads", f.events.loads.Load(), 8)
}

func TestAKindsLimitHoldsUpNoOtherKindAndLeavingItCostsNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: 2})
	db := newSource("v")
	slow := newCaches(t, f, CacheConfig[int, string]{
		Name: "slow", MaxLoads: 1, Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) },
	})[0]
	quick := newCaches(t, f, CacheConfig[int, string]{
		Name: "quick", Load: func(context.Context, int) (string, error) { return "q", nil },
	})[0]
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	first := make(chan error, 1)
	go func() {
		_, err := slow.Get(context.Background(), 0)
		first <- err
	}()
	<-db.begun
	for id := range 50 {
		waiting.Go(func() {
			expect.ErrorIs(t, expect.Err(slow.Get(ctx, id+1)), context.Canceled)
		})
	}
	redistest.Await(t, "the others wait", func() bool { return slow.policy.kind.loadSlots.Waiting() == 50 })
	v, err := quick.Get(context.Background(), 1) // has the Guard's other slot
	expect.Equal(t, "another kind", fmt.Sprint(v, " ", err), "q <nil>")
	cancel()
	waiting.Wait()
	redistest.Await(t, "nobody waits", func() bool { return slow.policy.kind.loadSlots.Waiting() == 0 })
	close(db.release)
	expect.ErrorIs(t, <-first, nil)
	for id := range 3 { // no slot was lost
		_, err := slow.Get(context.Background(), id)
		expect.ErrorIs(t, err, nil)
	}
	expect.Equal(t, "loads", db.loads.Load(), 3)
}

func TestALoadThatGivesUpTheGuardsLimitGivesBackItsKinds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: 1})
	db := newSource("v")
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "n", MaxLoads: 1, Load: func(context.Context, int) (string, error) { return "n", nil },
	})[0]
	other := async(f.guards[0], "other", db.load)
	<-db.begun
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		_, err := c.Get(ctx, 1)
		left <- err
	}()
	redistest.Await(t, "it waits for the Guard's", func() bool { return f.guards[0].Stats().Queued == 1 })
	cancel()
	expect.ErrorIs(t, <-left, context.Canceled)
	close(db.release)
	want(t, other, "v")
	v, err := c.Get(context.Background(), 1)
	expect.Equal(t, "value", fmt.Sprint(v, " ", err), "n <nil>")
}

// before and after are a struct before and after a deployment.
type (
	before struct{ Price int }
	after  struct{ Price string }
)

// later makes all Guards believe that the clock of the key's server is ahead by d.
func (f *fleet) later(key string, d time.Duration) {
	for _, g := range f.guards {
		g.serverClocks.Note(key, time.Now().Add(d), time.Now())
	}
}

func TestTwoVersionsOfAStructDoNotReplaceEachOthersEntriesInTurns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var log bytes.Buffer
	f := newFleet(t, standalone(t), 2, Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), TTL: time.Hour}).listening()
	old, err := NewCache(f.guards[0], CacheConfig[int, before]{
		Name: "p", Load: func(context.Context, int) (before, error) { return before{42}, nil }})
	expect.ErrorIs(t, err, nil)
	changed, err := NewCache(f.guards[1], CacheConfig[int, after]{
		Name: "p", Load: func(context.Context, int) (after, error) { return after{"42"}, nil }})
	expect.ErrorIs(t, err, nil)
	both := func(n int) {
		t.Helper()
		for range n {
			a, err := old.Get(ctx, 1)
			expect.Equal(t, "old", fmt.Sprint(a, err), "{42} <nil>")
			f.stored()
			b, err := changed.Get(ctx, 1)
			expect.Equal(t, "changed", fmt.Sprint(b, err), "{42} <nil>")
			many, err := changed.GetMany(ctx, []int{1})
			expect.Equal(t, "changed, of many", fmt.Sprint(many, err), "map[1:{42}] <nil>")
			f.stored()
		}
	}
	stored := func() string {
		v, _ := f.redis.Get(ctx, f.value("p:1")).Result()
		return v
	}
	began := time.Now()
	both(1)
	first := stored()
	both(5)
	expect.Equal(t, "the entry stays", stored(), first)
	expect.Equal(t, "loads", f.events.loads.Load(), 1+2*6)
	expect.Equal(t, "damaged", f.told().damaged.Load(), 2*6)
	if n, most := strings.Count(log.String(), "entry cannot be decoded"), 1+int(time.Since(began)/(10*time.Second)); n < 1 || n > most {
		t.Errorf("logged %d times, want once, or on a slow machine at most %d times", n, most) // again after ten seconds
	}
	expect.Equal(t, "with its cache", strings.Contains(log.String(), "kind=p"), true)

	// Later the entry may be left over from a version that is gone. It is replaced once.
	f.later("p:1", guess.FirstYield+time.Minute)
	_, _ = changed.Get(ctx, 1)
	f.stored()
	second := stored()
	expect.Equal(t, "the entry is replaced", second != first && strings.Contains(second, `"42"`), true)
	f.later("p:1", 0)
	both(5)
	expect.Equal(t, "the entry stays", stored(), second)
}

func TestAPushedEntryOfAnotherVersionIsNotReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{TTL: time.Hour}).listening()
	begun, release := make(chan struct{}), make(chan struct{})
	old, _ := NewCache(f.guards[0], CacheConfig[int, before]{
		Name: "p", Load: func(context.Context, int) (before, error) {
			close(begun)
			<-release
			return before{42}, nil
		}})
	changed, _ := NewCache(f.guards[1], CacheConfig[int, after]{
		Name: "p", Load: func(context.Context, int) (after, error) { return after{"42"}, nil }})
	done := make(chan error, 2)
	go func() {
		_, err := old.Get(context.Background(), 1)
		done <- err
	}()
	<-begun
	go func() {
		v, err := changed.Get(context.Background(), 1)
		if v.Price != "42" {
			err = errors.Join(err, errors.New("no value"))
		}
		done <- err
	}()
	f.awaitRegistered("p:1", 1)
	close(release)
	expect.ErrorIs(t, <-done, nil)
	expect.ErrorIs(t, <-done, nil)
	f.stored()
	v, err := old.Get(context.Background(), 1)
	expect.Equal(t, "the entry stays", fmt.Sprint(v, err), "{42} <nil>")
	expect.Equal(t, "loads", f.events.loads.Load(), 2)
}

// counting is a loader of a Cache that returns what the source has now.
func counting(now *atomic.Int64) func(context.Context, int) (int64, error) {
	return func(context.Context, int) (int64, error) { return now.Load(), nil }
}

func TestTheTagsOfACacheAreThoseOfItsThings(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{})
	var now atomic.Int64
	cfg := CacheConfig[int, int64]{
		Name: "n", Load: counting(&now),
		Tags: func(id int, _ int64) []string { return []string{fmt.Sprint("parity:", id%2)} },
	}
	one := newCaches(t, f, cfg)
	many := newCaches(t, f, CacheConfig[int, int64]{
		Name: "m", Load: cfg.Load, Tags: cfg.Tags, LoadMany: func(_ context.Context, ids []int) (map[int]int64, error) {
			values := make(map[int]int64)
			for _, id := range ids {
				values[id] = now.Load()
			}
			return values, nil
		},
	})
	fill := func() { // twice, as tags that nobody knew before may not be proven the first time
		for range 2 {
			_, _ = one[0].Get(ctx, 1)
			_, _ = one[0].GetMany(ctx, []int{2, 3})
			_, _ = many[0].GetMany(ctx, []int{1, 2})
			f.stored()
		}
		expect.ErrorIs(t, one[0].Put(ctx, 5, func(context.Context) (int64, error) { return now.Load(), nil }), nil)
	}
	fill()
	now.Store(7)
	mustInvalidateTags(t, f.guards[0], "parity:1")
	values, err := one[1].GetMany(ctx, []int{1, 2, 3, 5})
	expect.Equal(t, "of one", fmt.Sprint(values, err), "map[1:7 2:0 3:7 5:7] <nil>")
	values, err = many[1].GetMany(ctx, []int{1, 2})
	expect.Equal(t, "of many", fmt.Sprint(values, err), "map[1:7 2:0] <nil>")
}

func TestInvalidateAllOfACacheReachesItsKindAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{})
	var now atomic.Int64
	mine := newCaches(t, f, CacheConfig[int, int64]{Name: "mine", Load: counting(&now)})
	other := newCaches(t, f, CacheConfig[int, int64]{Name: "other", Load: counting(&now)})
	for id := range 5 {
		_, _ = mine[0].Get(ctx, id)
		_, _ = other[0].Get(ctx, id)
	}
	f.stored()
	expect.ErrorIs(t, mine[0].Put(ctx, 9, func(context.Context) (int64, error) { return 0, nil }), nil)
	now.Store(7)
	expect.ErrorIs(t, mine[1].InvalidateAll(ctx), nil)
	for i := range 2 {
		for _, id := range []int{0, 1, 2, 3, 4, 9} {
			v, err := mine[i].Get(ctx, id)
			expect.Equal(t, fmt.Sprint("mine ", id), fmt.Sprint(v, " ", err), "7 <nil>")
		}
		v, err := other[i].Get(ctx, 3)
		expect.Equal(t, "other", fmt.Sprint(v, " ", err), "0 <nil>")
	}
	var none *Cache[int, int]
	expect.ErrorIs(t, none.InvalidateAll(ctx), errNilCache)
}
