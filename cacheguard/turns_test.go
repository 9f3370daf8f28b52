package cacheguard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// gauge is a hook that counts the scripts under way.
type gauge struct{ now, most atomic.Int64 }

func (*gauge) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*gauge) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g *gauge) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		now := g.now.Add(1)
		defer g.now.Add(-1)
		for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
		}
		return next(ctx, cmd)
	}
}

func TestManyMissingKeysTakeTurnsInAskingForTheirLeases(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	scripts := new(gauge)
	rdb.AddHook(scripts)
	f := newFleetOn(t, rdb, Config{}, rdb)
	var all sync.WaitGroup
	for i := range 20 * maxTurns {
		all.Go(func() {
			key := fmt.Sprint("k", i)
			_, how, err := get(context.Background(), f.guards[0], key, returns(i))
			if err != nil || how != Loaded {
				t.Errorf("%s: %v, %v", key, how, err)
			}
		})
	}
	all.Wait()
	// Clean-ups take no turns, and there should be none.
	if most := scripts.most.Load(); most < 2 || most > maxTurns {
		t.Errorf("%d scripts at once", most)
	}
}

func TestWhoWaitsForATurnDoesWithoutWhenRedisHangs(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	f.events.quiet = true
	f.listening()
	proxy.BlackHole(true)
	defer proxy.Cut()
	defer proxy.BlackHole(false)
	var all sync.WaitGroup
	for i := range 4 * maxTurns {
		all.Go(func() {
			if v := mustGet(t, f.guards[0], fmt.Sprint("k", i), returns(i)); v != i {
				t.Errorf("got %d, want %d", v, i)
			}
		})
	}
	all.Wait()
}

func TestWaitTimeoutBoundsTheWaitForATurnToo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{WaitTimeout: 50 * time.Millisecond}).listening()
	db := newSource("theirs")
	theirs := async(f.guards[1], "k", db.load)
	<-db.begun
	g := f.guards[0]
	for range maxTurns { // nobody gives a turn back
		g.turns[g.health.Part(g.redisKey("k"))] <- struct{}{}
	}
	equal(t, "without a turn", mustGet(t, g, "k", returns("ours")), "ours")
	close(db.release)
	want(t, theirs, "theirs")
}
