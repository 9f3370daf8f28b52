package cacheguard

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
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
