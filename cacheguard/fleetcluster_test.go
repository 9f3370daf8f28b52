package cacheguard

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// nodeOfPermits is the primary that has the permits, and its replica.
func (f *fleet) nodeOfPermits(c *redistest.Cluster) (primary, replica *redistest.Server) {
	f.t.Helper()
	node, err := f.redis.(*redis.ClusterClient).MasterForKey(context.Background(), f.guards[0].keys.ValueKey(fleetLoads))
	expect.Must(f.t, err)
	for i := range 3 {
		if c.Node(i).Addr() == node.Options().Addr {
			return c.Node(i), c.Node(3 + i)
		}
	}
	f.t.Fatal("no node has the permits")
	return nil, nil
}

// suspended reports whether some instance loads without permits.
func (f *fleet) suspended() bool {
	for _, g := range f.guards {
		if g.suspended() {
			return true
		}
	}
	return false
}

// atOnce makes the instances load some keys that nobody has, and returns the most loads that ran at once.
func (f *fleet) atOnce(round int) int64 {
	var db pool
	var all sync.WaitGroup
	for i := range 12 * len(f.guards) {
		all.Go(func() { // owner: the test; ends with the Get; joined below
			_, err := Get(context.Background(), f.guards[i%len(f.guards)], fmt.Sprint("round ", round, " key ", i), func(context.Context) (int, error) {
				db.query(func() { pause(5 * time.Millisecond) })
				return 1, nil
			})
			expect.ErrorIs(f.t, err)
		})
	}
	all.Wait()
	return db.most.Load()
}

// awaitLimit waits until the permits count again. From then on they hold.
func (f *fleet) awaitLimit(limit int64) {
	f.t.Helper()
	calm := 0
	for round := 0; calm < 3; round++ {
		redistest.Await(f.t, "loads need permits", func() bool { return !f.suspended() })
		failures := f.events.redisErrors.Load()
		most := f.atOnce(round)
		if f.suspended() || f.events.redisErrors.Load() > failures {
			continue
		}
		if most > limit {
			f.t.Errorf("%d loads at once with permits, want at most %d", most, limit)
		}
		calm++
	}
}

func TestWithoutTheNodeOfThePermitsLoadsNeedNoneUntilItsReplicaHasThem(t *testing.T) {
	t.Parallel()
	expect.Each(t, expect.Some(1, map[string]func(*redistest.Server){
		"killed": (*redistest.Server).Kill, "frozen": (*redistest.Server).Pause,
	}), func(t *testing.T, _ string, lose func(*redistest.Server)) {
		c := redistest.StartCluster(t, 1)
		a := arena{client: func(tb testing.TB) client { return c.Client(tb) }}
		const instances, maxLoads = 2, 3
		f := newFleet(t, a, instances, Config{
			Limiter: permitsOf(1), MaxLoads: maxLoads, RedisTimeout: brisk, LeaseTTL: brisk, LoadTimeout: off,
		}).listening()
		f.events.quiet = true
		f.awaitLimit(1)
		held := newSource("held")
		busy := async(f.guards[0], "busy", held.load)
		<-held.begun
		waits := async(f.guards[1], "waits", returns("v"))
		redistest.Await(t, "a load waits for a permit", func() bool { return f.guards[1].Stats().Of("limiter_queued") == 1 })
		primary, replica := f.nodeOfPermits(c)
		lose(primary)
		want(t, waits, "v")
		if n := f.atOnce(-1); n > instances*maxLoads {
			t.Errorf("%d loads at once, want at most %d", n, instances*maxLoads)
		}
		redistest.Await(t, "the replica is the primary", func() bool { return role(replica) == "master" })
		close(held.release)
		want(t, busy, "held")
		f.awaitLimit(1)
	})
}

// A replica may not have heard of the last permits when it becomes the primary. As many again are then given out, until the loads whose
// permits were forgotten have ended: a permit that is lost ends no load.
func TestAsManyPermitsAreGivenOutAgainAsWereForgotten(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{Limiter: permitsOf(2), RedisTimeout: time.Minute, LeaseTTL: time.Minute, LoadTimeout: off}).listening()
	queued := func() int {
		return int(f.guards[0].Stats().Of("limiter_queued") + f.guards[1].Stats().Of("limiter_queued"))
	}
	db := newSource("v")
	var replies []<-chan reply[string]
	for i := range 8 {
		replies = append(replies, async(f.guards[i%2], fmt.Sprint("k", i), db.load))
	}
	redistest.Await(t, "two load, and the others wait", func() bool { return db.loads.Load() == 2 && queued() == 6 })
	expect.Must(t, f.redis.Del(context.Background(), f.guards[0].cfg.Prefix+":{"+fleetLoads+"}:sem:holders").Err())
	redistest.Await(t, "two more load", func() bool { return db.loads.Load() == 4 })
	expect.Equal(t, "loads that wait", queued(), 4)
	expect.Equal(t, "permits", len(f.permits().Holders), 2)
	close(db.release)
	for _, r := range replies {
		want(t, r, "v")
	}
	f.awaitPermits(0)
}
