package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

func TestCloseCancelsLoadsThoughAReadHangs(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: 300 * time.Millisecond}) // it only has to end
	db := newSource("v")
	loading := async(f.guards[0], "k", db.load)
	<-db.begun
	rule := proxy.On(steps["get"], redistest.SwallowReply)
	reading := async(f.guards[0], "other", returns("x"))
	<-rule.Hit()
	closed := closing(f.guards[0])
	select {
	case <-loading:
	case <-closed:
		t.Error("Close waited for the read before it cancelled the load")
	}
	<-reading
	<-closed
}

func TestCloseDoesNotFailTheCallersOfOtherInstances(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{LeaseTTL: time.Minute, RedisTimeout: brisk})
	f.listening()
	db := newSource("part")
	page := func(ctx context.Context) (string, error) {
		if _, err := db.load(ctx); err != nil {
			return "", err
		}
		return Get(ctx, f.guards[0], "part", returns("part"))
	}
	first := async(f.guards[0], "k", page)
	<-db.begun
	second := async(f.guards[1], "k", returns("own"))
	f.awaitRegistered("k", 1)
	rule := proxy.On(steps["get"], redistest.SwallowReply) // Close is waiting for this read
	hanging := async(f.guards[0], "hanging", returns("x"))
	<-rule.Hit()
	closed := closing(f.guards[0])
	redistest.Await(t, "the guard is closing", func() bool {
		_, err := f.guards[0].link.Ask(doneCtx(), "probe")
		return err != nil
	})
	close(db.release) // the loader goes on to its nested Get
	<-first
	r := <-second
	if r.err != nil {
		t.Errorf("a caller on another instance got: %v", r.err)
	}
	<-hanging
	<-closed
}

func doneCtx() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// closing begins to close the Guard. The channel closes at the end.
func closing(g *Guard) <-chan struct{} {
	done := make(chan struct{})
	go func() { // owner: the test; ends with Close; joined by receiving
		defer close(done)
		_ = g.Close() // always nil
	}()
	return done
}

// Updates that have lost their locks give them up themselves, while Close ends everything.
func TestCloseBesideUpdatesThatHaveLostTheirLocksJoinsThemAll(t *testing.T) {
	t.Parallel()
	for range 3 {
		f := newFleet(t, standalone(t), 1, Config{LeaseTTL: time.Second})
		g := f.guards[0]
		var writing, all sync.WaitGroup
		lost := make(chan struct{})
		lose := sync.OnceFunc(func() { close(lost) })
		var deleted atomic.Bool
		for i := range 40 {
			writing.Add(1)
			all.Go(func() { // owner: the test; ends with Update; joined below
				early := false // the machine stood still, and Redis may have had the lock all the same
				began := sync.OnceFunc(writing.Done)
				defer lose()
				defer began() // it may lose its lock before it writes
				err := g.Update(context.Background(), fmt.Sprint("k", i), func(ctx context.Context) error {
					began()
					<-ctx.Done()
					lose()
					early = !deleted.Load()
					return nil
				})
				if !early && !errors.Is(err, rwlock.ErrLeaseLost) && !errors.Is(err, rwlock.ErrClosed) {
					t.Error(err)
				}
			})
		}
		writing.Wait()
		for i := range 40 {
			f.redis.Del(t.Context(), keys.Tagged(g.cfg.Prefix, fmt.Sprint("k", i))+":rw")
		}
		deleted.Store(true)
		<-lost
		_ = g.Close() // always nil
		all.Wait()
	}
}
