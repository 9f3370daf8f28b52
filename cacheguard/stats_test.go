package cacheguard

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/observe"
)

func TestOnStaleTellsHowLongPastItsTTLAValueIs(t *testing.T) {
	t.Parallel()
	var past atomic.Int64
	g := newGuard(t, shared.Client(t), Config{
		Prefix: "test-" + t.Name(), TTL: 20 * time.Millisecond, StaleFor: time.Hour,
		Observers: []Observer{On(EventStale, func(_ context.Context, e Event) { past.Store(int64(e.Took)) })},
	})
	redistest.Await(t, "a stale value is served", func() bool {
		mustGet(t, g, "k", returns("v"))
		return past.Load() != 0
	})
	if d := time.Duration(past.Load()); d < 0 || d > time.Minute {
		t.Errorf("past its TTL by %v", d)
	}
}

func TestStatsTellOfLoadersThatRun(t *testing.T) {
	t.Parallel()
	g := newGuard(t, shared.Client(t), Config{Prefix: "test-" + t.Name()})
	for _, err := range []error{
		func() error {
			_, err := Get(t.Context(), g, "k", func(context.Context) (string, error) {
				expect.Equal(t, "loading", g.Stats().Loading, 1)
				expect.Equal(t, "waiting", g.Stats().Waiting, 1)
				return "", nil
			})
			return err
		}(),
		func() error {
			_, err := GetMany(t.Context(), g, []string{"a", "b"}, func(context.Context, []string) (map[string]string, error) {
				expect.Equal(t, "loading many", g.Stats().Loading, 1)
				return nil, nil
			})
			return err
		}(),
	} {
		expect.Equal(t, "error", err, nil)
	}
	expect.Equal(t, "afterwards", g.Stats().Loading, 0)
	expect.Equal(t, "limit", g.Stats().MaxLoads, defaultMaxLoads)
	expect.Equal(t, "of nil", (*Guard)(nil).Stats(), Stats{})
}

func TestOnStaleTellsOfValuesThatStandInForRedis(t *testing.T) {
	t.Parallel()
	cfg := withLocal
	cfg.StaleFor = time.Hour
	f, proxy := broken(t, shared, cfg)
	g := f.guards[0]
	var told []time.Duration
	alsoTell(g, On(EventStale, func(_ context.Context, e Event) { told = append(told, e.Took) }))
	f.keptBy(0, "k", "v")
	proxy.Refuse(true)
	redistest.Await(t, "the inbox is down", func() bool { return !g.inbox.Live() })
	expect.Equal(t, "Get", mustGet(t, g, "k", unwanted[string](t)), "v")
	expect.ErrorIs(t, expect.Err(GetMany(t.Context(), g, []string{"k"}, newShelf().load)))
	_, how, err := Fetch(t.Context(), g, "k", Source[string]{Judge: func(string) Verdict { return Serve }})
	if how != Stale || err != nil {
		t.Errorf("Fetch: %s, %v", how, err)
	}
	expect.Equal(t, "times told, of Get and GetMany", len(told), 2)
	for _, past := range told {
		expect.Equal(t, "past its TTL", past, 0) // which is not over
	}
}

func TestStatsTellOfBytesAndOfTheLocalTier(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{Local: LocalConfig{MaxBytes: 4 << 10, TTL: time.Hour}}).listening()
	g := f.guards[0]
	value := string(make([]byte, 1000))
	mustGet(t, g, "k", returns(value))
	if s := g.Stats(); s.BytesWritten < 1000 || s.BytesRead >= 1000 || !s.Subscribed {
		t.Errorf("%+v", s)
	}
	mustGet(t, g, "k", unwanted[string](t))
	if s := g.Stats(); s.BytesRead < 1000 || s.BytesRead > 2000 || s.LocalEntries != 1 || s.Of("local_bytes") < 1000 {
		t.Errorf("%+v", s)
	}
	redistest.Await(t, "one gives way", func() bool {
		for _, key := range numbered(0, 20) {
			mustGet(t, g, key, returns(value))
			mustGet(t, g, key, returns(value))
		}
		return g.Stats().Of("local_evictions_total") > 0
	})
}

func TestStatsTellOfLoadsThatWait(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{MaxLoads: 1}).guards[0]
	db := newSource("v")
	all := []<-chan reply[string]{async(g, "a", db.load)}
	<-db.begun
	all = append(all, async(g, "b", db.load), async(g, "b", db.load), async(g, "c", db.load))
	redistest.Await(t, "two loads wait", func() bool {
		s := g.Stats()
		return s.Queued == 2 && s.Waiting == 4 && s.Loading == 1
	})
	close(db.release)
	for _, c := range all {
		want(t, c, "v")
	}
}

func TestTagsAndKeysThatNothingHasAreCountedWhenTheyAreInvalidated(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	products, err := NewCache(g, CacheConfig[int, string]{
		Name: "product", Load: func(ctx context.Context, _ int) (string, error) { SetTags(ctx, "category:shoes"); return "v", nil },
		Tags: func(int, string) []string { return []string{"list"} },
	})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "category:shoes"))
	expect.Equal(t, "before there was a load", g.journal.Tags.Count(), 0)
	_, err = products.Get(t.Context(), 1)
	expect.ErrorIs(t, err)
	_, err = Get(t.Context(), g, "price:1", func(context.Context) (string, error) { return "v", nil })
	expect.ErrorIs(t, err)

	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "category:hats", "list", "categroy:shoes"))
	expect.ErrorIs(t, g.Invalidate(t.Context(), "product:2", "price:2", "prodcut:1"))
	expect.ErrorIs(t, products.Invalidate(t.Context(), 1))
	in, err := g.Intend(t.Context(), Changes{Keys: []string{"product:1", "prodcut:2"}, Tags: []string{"list"}})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, in.Also(t.Context(), Changes{Tags: []string{"lists"}}))
	expect.ErrorIs(t, in.Done(t.Context()))
	expect.ErrorIs(t, g.Update(t.Context(), "pirce:1", func(ctx context.Context) error { return Also(ctx, Changes{Tags: []string{"lits"}}) }))
	expect.Equal(t, "tags", times(g.journal.Tags.Unknown()), "map[categroy:1 lists:1 lits:1]")
	expect.Equal(t, "keys", times(g.journal.Keys.Unknown()), "map[pirce:1 prodcut:2]")
	expect.Equal(t, "in Stats", g.Stats().Of("unknown_names"), 6)
}

func TestTagsOfASourceAreKnown(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	_, _, err := Fetch(t.Context(), g, "page:/p/1", Source[string]{Tags: []string{"path:/p/"}, Load: func(context.Context, *string) (string, error) { return "v", nil }})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "path:/p/"))
	expect.Equal(t, "unknown", g.journal.Tags.Count(), 0)
}

// times is how often each kind was invalidated, as a map is printed.
func times(unknown map[string]observe.Mistyped) string {
	all := make(map[string]uint64)
	for kind, of := range unknown {
		all[kind] = of.Times
	}
	return fmt.Sprint(all)
}

func TestAnInstanceThatOnlyWritesCountsNoTagsOfOthers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	products, err := NewCache(g, CacheConfig[int, string]{
		Name: "product", Load: func(context.Context, int) (string, error) { return "v", nil },
		Tags: func(int, string) []string { return []string{"category:shoes"} },
	})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, products.Put(t.Context(), 1, func(context.Context) (string, error) { return "v", nil }))
	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "list"))
	expect.Equal(t, "unknown to a writer", g.journal.Tags.Count(), 0)
}

func TestACacheCountsItsHitsMissesAndLoads(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{})
	cfg := CacheConfig[int, int]{Name: "square", Load: func(_ context.Context, id int) (int, error) {
		if id == 0 {
			return 0, ErrNotFound
		}
		return id * id, nil
	}}
	c, same := newCaches(t, f, cfg)[0], newCaches(t, f, cfg)[0]
	cfg.Name = "other"
	other := newCaches(t, f, cfg)[0]
	for range 3 {
		for _, id := range []int{0, 1} {
			_, _ = c.Get(ctx, id)
			f.stored()
		}
	}
	_, err := same.GetMany(ctx, []int{0, 1, 2, 3})
	expect.Must(t, err)
	_, _, _ = c.Peek(ctx, 1) // no answer that counts
	counted := func(c *Cache[int, int]) string {
		s := c.Stats()
		return fmt.Sprint(s.Of("hits_total"), s.Of("misses_total"), s.Of("loads_total"), s.Of("pending_invalidations"))
	}
	expect.Equal(t, "hits, misses and loads", counted(c), "6 4 4 0")
	expect.Equal(t, "of the same name", counted(same), "6 4 4 0")
	expect.Equal(t, "of another", counted(other), "0 0 0 0")
}
