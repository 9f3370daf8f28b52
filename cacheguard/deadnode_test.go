package cacheguard

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

// partly is a cluster that serves the slots it has when a node is away.
func partly(t *testing.T) (*redistest.Cluster, *redis.ClusterClient) {
	t.Helper()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.MaxRedirects = -1 })
	err := rdb.ForEachShard(context.Background(), func(ctx context.Context, node *redis.Client) error {
		return node.ConfigSet(ctx, "cluster-require-full-coverage", "no").Err()
	})
	expect.Must(t, err)
	return c, rdb
}

// Each part of a cluster has epochs of its own, so a node that is away concerns its own keys.
func TestTaggedEntriesOfOtherNodesAreHitsWhileANodeIsAwayAndTheirTagsCanBeInvalidated(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, rdb := partly(t)
	f := newFleetOn(t, rdb, Config{RedisTimeout: 2 * time.Second}, rdb) // a machine that is busy is not a node that hangs
	f.events.quiet = true
	g := f.guards[0]
	ofHung := func(key string) bool { return g.partOf(key) < breaker.Parts/3 } // masters have equal shares, in order
	keys := numbered(0, 60)
	for range 2 { // the second load knows the tags
		for _, key := range keys {
			mustGet(t, g, key, tagged("old", "t", "u"))
		}
	}
	c.Node(0).Pause()
	defer c.Node(0).Resume()
	for _, key := range keys {
		if !ofHung(key) {
			expect.Returns(t, "old", Hit, nil)(get(ctx, g, key, unwanted[string](t)))
		}
	}
	expectRedisError(t, g.InvalidateTags(ctx, "t"), "", "t")
	for part := range breaker.Parts {
		expect.Equal(t, "pending", g.writes.Had(epoch.OfTag("t"), part, g.writes.Moment()), part < breaker.Parts/3)
	}
	for _, key := range keys {
		if !ofHung(key) {
			expect.Equal(t, key, mustGet(t, g, key, tagged("new", "t", "u")), "new")
		}
	}
}

// A kind, and everything, have epochs in each part, too.
func TestAKindAndEverythingCanBeInvalidatedOnTheOtherNodesWhileANodeIsAway(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, rdb := partly(t)
	f := newFleetOn(t, rdb, Config{RedisTimeout: 2 * time.Second}, rdb)
	f.events.quiet = true
	g, current := f.guards[0], atomic.Value{}
	current.Store("old")
	things, err := NewCache(g, CacheConfig[int, string]{
		Name: "thing", Tags: func(int, string) []string { return []string{"t"} },
		Load: func(context.Context, int) (string, error) { return current.Load().(string), nil },
	})
	expect.Equal(t, "error", err, nil)
	var others []int // ids whose node stays
	for id := range 60 {
		for range 2 { // the second load knows the tags
			_, err := things.Get(ctx, id)
			expect.Equal(t, "error", err, nil)
		}
		if g.partOf(things.Key(id)) >= breaker.Parts/3 {
			others = append(others, id)
		}
	}
	all := func(want string) {
		t.Helper()
		for _, id := range others {
			expect.Returns(t, want, nil)(things.Get(ctx, id))
		}
	}
	c.Node(0).Pause()
	defer c.Node(0).Resume()
	current.Store("new")
	all("old") // they are hits
	for _, many := range []struct {
		name, key string
		call      func(context.Context) error
	}{{epoch.OfKind("thing"), "thing", things.InvalidateAll}, {epoch.All, "", g.InvalidateAll}} {
		err := many.call(ctx)
		var failed *RedisError
		if !errors.As(err, &failed) || failed.Key != many.key {
			t.Errorf("error: %v", err)
		}
		for part := range breaker.Parts {
			expect.Equal(t, "pending", g.writes.Had(many.name, part, g.writes.Moment()), part < breaker.Parts/3)
		}
		all(current.Load().(string))
		for range 2 { // it was loaded again, and stored: another load would show
			redistest.Await(t, "nothing is loaded", func() bool { return g.Stats().Loading == 0 })
			was := current.Swap(current.Load().(string) + "er")
			all(was.(string))
			current.Store(was)
		}
		current.Store(current.Load().(string) + "er")
	}
}

// The process renews the leases of all its writes together.
func TestAnUpdateGoesOnWhileTheNodeOfAnotherIsAway(t *testing.T) {
	t.Parallel()
	c, rdb := partly(t)
	f := newFleetOn(t, rdb, Config{RedisTimeout: 2 * time.Second, LeaseTTL: 4 * time.Second}, rdb)
	f.events.quiet = true
	g, finish := f.guards[0], make(chan struct{})
	update := func(of func(part int) bool) (ended chan error) {
		ended, writing := make(chan error, 1), make(chan struct{})
		go func() { // owner: the test; ends when told, or with its lease; joined by the channel
			keys := numbered(0, 60)
			key := keys[slices.IndexFunc(keys, func(key string) bool { return of(g.partOf(key)) })]
			ended <- g.Update(context.Background(), key, func(ctx context.Context) error {
				close(writing)
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-finish:
					return nil
				}
			})
		}()
		<-writing
		return ended
	}
	live := update(func(part int) bool { return part >= breaker.Parts/3 })
	hung := update(func(part int) bool { return part < breaker.Parts/3 })
	c.Node(0).Pause()
	defer c.Node(0).Resume()
	expect.ErrorIs(t, <-hung, rwlock.ErrLeaseLost)
	close(finish)
	expect.Equal(t, "the other", <-live, nil)
}
