package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// held is a fleet with a proxy that holds up the first instance's requests for leases.
func held(t *testing.T) (f *fleet, rule *redistest.Rule) {
	t.Helper()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing})
	f.listening()
	return f, proxy.On(steps["acquire"], redistest.Hold)
}

// idle waits until leases are given back. One may stay until it ends: if the caller sends the first request itself, and
// leaves in the middle of that, the lease is given back at once, and the proxy has the request arrive after that.
func (f *fleet) idle(call string) {
	f.t.Helper()
	redistest.Await(f.t, "no lease is held", func() bool {
		all, err := f.redis.Keys(context.Background(), f.guards[0].cfg.Prefix+":*:lease").Result()
		return err == nil && (len(all) == 0 || len(all) == 1 && call == "GetMany")
	})
}

func TestAGetManyThatIsCancelledLeavesALoadToThoseWhoJoinedIt(t *testing.T) {
	t.Parallel()
	f, rule := held(t)
	db := openShelf()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	keys := numbered(0, 300)
	many := make(chan error, 1)
	go func() { // owner: the test; ends with the GetMany; joined by receiving
		_, err := GetMany(ctx, f.guards[0], keys, db.load)
		many <- err
	}()
	<-rule.Hit()
	awaitCallers[string](f, 0, "k299", 1)
	live := async(f.guards[0], "k299", returns("own"))
	awaitCallers[string](f, 0, "k299", 2)
	cancel()
	if err := <-many; !errors.Is(err, context.Canceled) {
		t.Errorf("the GetMany that was cancelled: %v", err)
	}
	rule.Release()
	want(t, live, "v:k299")
	expect.Equal(t, "what was loaded", fmt.Sprint(db.calls()), "[[k299]]")
	expect.Equal(t, "value elsewhere", mustGet(t, f.guards[1], "k299", unwanted[string](t)), "v:k299")
	expect.Equal(t, "and of a key that was given up", mustGet(t, f.guards[1], "k000", returns("new")), "new")
}

func TestNothingIsLoadedForCallersThatHaveLeft(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(ctx context.Context, g *Guard, db *shelf) error{
		"GetMany": func(ctx context.Context, g *Guard, db *shelf) error {
			_, err := GetMany(ctx, g, numbered(0, 300), db.load)
			return err
		},
		"Get": func(ctx context.Context, g *Guard, db *shelf) error {
			_, err := Get(ctx, g, "k", func(ctx context.Context) (string, error) {
				values, err := db.load(ctx, []string{"k"})
				return values["k"], err
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, rule := held(t)
			db := openShelf()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- call(ctx, f.guards[0], db) }() // owner: the test; ends with the call; joined by receiving
			<-rule.Hit()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("the call that was cancelled: %v", err)
			}
			rule.Release()
			f.idle(name) // leases that were granted all the same are given back
			expect.Equal(t, "loads", len(db.calls()), 0)
			expect.Equal(t, "failures of Redis", f.events.redisErrors.Load(), 0)
		})
	}
}

// A loader may use the context of the request that it was made for, instead of its own.
func TestALoadThatWasCancelledFailsNobodyElse(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: time.Minute}).listening()
	request, cancel := context.WithCancel(context.Background())
	begun := make(chan struct{})
	first := async(f.guards[0], "k", func(context.Context) (string, error) {
		close(begun)
		<-request.Done()
		return "", request.Err()
	})
	<-begun
	joined := async(f.guards[0], "k", returns("joined"))
	awaitCallers[string](f, 0, "k", 2)
	elsewhere := async(f.guards[1], "k", returns("elsewhere"))
	f.awaitRegistered("k", 1)
	cancel()
	if r := <-first; !errors.Is(r.err, context.Canceled) {
		t.Errorf("whose loader it was: %v", r.err)
	}
	a, b := <-joined, <-elsewhere
	if a.err != nil || b.err != nil || a.value != b.value {
		t.Errorf("the others: %v, %v", a, b)
	}
}
