package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// reshardings is how many slots move, each with all its keys: values, leases, intents and locks.
func reshardings() int { return expect.Samples(24, 170) }

// table is a database with a version for each key.
type table struct {
	keys  []string
	rows  map[string]*atomic.Int64
	least map[string]*atomic.Int64 // what the last Update, which had returned nil, wrote
}

func newTable(n int) *table {
	s := &table{rows: make(map[string]*atomic.Int64), least: make(map[string]*atomic.Int64)}
	for i := range n {
		key := fmt.Sprint("k", i)
		s.keys = append(s.keys, key)
		s.rows[key], s.least[key] = new(atomic.Int64), new(atomic.Int64)
	}
	return s
}

func (s *table) load(_ context.Context, keys []string) (map[string]int64, error) {
	found := make(map[string]int64)
	for _, key := range keys {
		found[key] = s.rows[key].Load()
	}
	return found, nil
}

func TestNothingStaleIsReadWhileSlotsMoveKeyByKey(t *testing.T) {
	t.Parallel()
	expect.Each(t, expect.Some(1, map[string]Config{"Redis alone": {}, "with a local tier": withLocal}), func(t *testing.T, _ string, cfg Config) {
		cluster := redistest.StartCluster(t, 0)
		cfg.LeaseTTL = 500 * time.Millisecond // what has lost it is not stored, and nothing counts that
		f := newFleetOn(t, cluster.Client(t), cfg, cluster.Client(t), cluster.Client(t))
		f.events.quiet = true
		db := newTable(24)
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		stop := func() { cancel(); all.Wait() }
		defer stop()
		var gets, updates, failed atomic.Int64
		for i := range 4 { // owner: the test; stop: ctx; joined below
			all.Go(func() { db.read(ctx, t, f.guards[0], i, &gets) })
		}
		for i, key := range db.keys { // one for each key, so that versions come in their order
			if i%3 == 0 {
				all.Go(func() { db.update(ctx, f.guards[0], key, &updates, &failed) })
			}
		}
		slots, steps := 0, 0
		for i := 0; slots < reshardings(); i++ {
			slot, to := keys.Slot(f.value(db.keys[i%len(db.keys)])), (i+i/len(db.keys))%3 // another one in each round
			if err := cluster.Move(t.Context(), slot, to, func(moved int) {
				steps++
				if moved == 0 {
					slots++
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		t.Logf("%d slots moved, in %d steps; %d gets, %d updates, %d failed", slots, steps, gets.Load(), updates.Load(), failed.Load())
		if gets.Load() == 0 || updates.Load() == 0 {
			t.Error("nothing happened")
		}
		for _, key := range db.keys { // nothing is left that would hold up a reader
			expect.Equal(t, key, mustGet(t, f.guards[1], key, func(context.Context) (int64, error) { return db.rows[key].Load(), nil }),
				db.rows[key].Load())
		}
	})
}

// read reads one key or all of them. The instance that updates does the reading: with a local tier, the others may be a message behind.
func (s *table) read(ctx context.Context, t *testing.T, g *Guard, turn int, gets *atomic.Int64) {
	for ; ctx.Err() == nil; turn++ {
		asked := s.keys
		if turn%4 > 0 {
			asked = s.keys[turn%len(s.keys):][:1]
		}
		least := make(map[string]int64)
		for _, key := range asked {
			least[key] = s.least[key].Load()
		}
		got := make(map[string]int64)
		var err error
		if len(asked) > 1 {
			got, err = GetMany(context.Background(), g, asked, s.load)
		} else {
			got[asked[0]], err = Get(context.Background(), g, asked[0], func(context.Context) (int64, error) { return s.rows[asked[0]].Load(), nil })
		}
		if err != nil {
			t.Errorf("%v: %v", asked, err)
		}
		for key, version := range got {
			if version < least[key] {
				t.Errorf("%s: version %d after an Update to %d had returned", key, version, least[key])
			}
		}
		gets.Add(1)
		breathe(time.Millisecond)
	}
}

func (s *table) update(ctx context.Context, g *Guard, key string, updates, failed *atomic.Int64) {
	for ctx.Err() == nil {
		version := int64(0)
		err := g.Update(context.Background(), key, func(context.Context) error {
			version = s.rows[key].Add(1)
			return nil
		})
		if err != nil {
			failed.Add(1)
			continue
		}
		s.least[key].Store(version)
		updates.Add(1)
		breathe(time.Millisecond)
	}
}

// Redis refuses scripts of several keys of the slot then, unless all of the keys are there.
func TestInvalidationsOfKeysWhoseSlotIsMovedAreDone(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 0)
	f := newFleetOn(t, cluster.Client(t), Config{RedisTimeout: bearing}, cluster.Client(t), cluster.Client(t))
	g := f.guards[0]
	slot := keys.Slot(f.value("k"))
	mustGet(t, g, "k", returns("old"))
	for to := range 3 {
		err := cluster.Move(t.Context(), slot, to, func(moved int) {
			expect.Equal(t, fmt.Sprint("node ", to, ", keys moved ", moved, ": invalidation"), g.Invalidate(context.Background(), "k"), nil)
			expect.Equal(t, "pending", g.Stats().Pending, 0)
			expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns(fmt.Sprint(to, moved))), fmt.Sprint(to, moved))
		})
		expect.Must(t, err)
	}
	mustInvalidate(t, g, "k")
	expect.Equal(t, "value, in the end", mustGet(t, f.guards[1], "k", returns("new")), "new")
}

// The epochs of a tag and of all tags are two keys of a slot.
func TestTagsWhoseEpochsAreMovedCanBeInvalidated(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 0)
	f := newFleetOn(t, cluster.Client(t), Config{RedisTimeout: bearing}, cluster.Client(t), cluster.Client(t))
	g := f.guards[0]
	slot := keys.Slot(g.epochs.Key(epoch.OfTag("t"), g.partOf("k")))
	for range 2 { // the second load knows the tag
		mustGet(t, g, "k", tagged("old", "t"))
	}
	for to := range 3 {
		err := cluster.Move(t.Context(), slot, to, func(moved int) {
			value := fmt.Sprint(to, moved)
			expect.Equal(t, "invalidation at "+value, g.InvalidateTags(context.Background(), "t"), nil)
			expect.Equal(t, "pending", g.Stats().Pending, 0)
			expect.Equal(t, "value", mustGet(t, f.guards[1], "k", tagged(value, "t")), value)
		})
		expect.Must(t, err)
	}
}

// An intent can be ended while the slot is moved. If one cannot be announced, the transaction does not commit.
func TestIntentsOnKeysWhoseSlotIsMovedAreDone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t, 0)
	f := newFleetOn(t, cluster.Client(t), Config{RedisTimeout: bearing}, cluster.Client(t), cluster.Client(t))
	f.events.quiet = true
	g := f.guards[0]
	mustGet(t, g, "k", returns("old"))
	for to := range 3 {
		before, err := g.Intend(ctx, Changes{Keys: []string{"k"}})
		expect.Must(t, err)
		err = cluster.Move(t.Context(), keys.Slot(f.value("k")), to, func(moved int) {
			value := fmt.Sprint(to, moved)
			expect.Equal(t, "end, at "+value, before.Done(ctx), nil)
			expect.Equal(t, "pending", g.Stats().Pending, 0)
			expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns(value)), value)
			in, err := g.Intend(ctx, Changes{Keys: []string{"k"}})
			var failed *RedisError
			if is := errors.As(err, &failed); err != nil && (!is || failed.Op != "intend" || Written(err)) {
				t.Errorf("%s: %v", value, err)
			} else if err == nil {
				expect.Equal(t, "end, at "+value, in.Done(ctx), nil)
			}
		})
		expect.Must(t, err)
	}
}

// The steps of such an invalidation are not one: whoever names the tag between them must not find the epoch of all tags from before.
func TestALoadThatEndsBetweenTheStepsOfAnInvalidationOfItsTagIsNotStored(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleetOn(t, shared.Client(t), Config{}, shared.Client(t))
	g := f.guards[0]
	for stopped := range 2 {
		key := fmt.Sprint("k", stopped)
		db := newSource("old")
		loading := async(g, key, db.loadTagged("t"))
		<-db.begun
		steps := g.epochs.RevokeInSteps(epoch.OfTag("t"), g.partOf(key), "")
		expect.Equal(t, "steps", len(steps), 3)
		for _, step := range steps[:1+stopped] {
			expect.Equal(t, "error", f.redis.Del(ctx, step[0].Keys...).Err(), nil)
		}
		close(db.release)
		want(t, loading, "old")
		expect.Equal(t, "value", mustGet(t, g, key, tagged("new", "t")), "new")
	}
}
