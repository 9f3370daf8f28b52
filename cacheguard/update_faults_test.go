package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

func TestWhateverWriteDoesTheUpdateEnds(t *testing.T) {
	t.Parallel()
	failure := errors.New("constraint violated")
	for name, c := range map[string]struct {
		write func(context.Context, context.CancelFunc) error
		want  error
	}{
		"returns an error": {func(context.Context, context.CancelFunc) error { return failure }, failure},
		"is cancelled": {func(ctx context.Context, cancel context.CancelFunc) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, context.Canceled},
		"panics": {func(context.Context, context.CancelFunc) error { panic("write") }, errPanicked},
		"is slower than the lease": {func(context.Context, context.CancelFunc) error {
			<-time.After(1500 * time.Millisecond) // three leases
			return nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, standalone(t), 2, Config{LeaseTTL: 500 * time.Millisecond}) // one write is slower
			db := newRow("old")
			f.expectUntouched("k", "old", db)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			err := recovered(func() error {
				return f.guards[0].Update(ctx, "k", func(ctx context.Context) error {
					db.value.Store("new")
					return c.write(ctx, cancel)
				})
			})
			lost := errors.Is(err, rwlock.ErrLeaseLost) // on a busy machine the renewals of so short a lease come late
			if !lost && (!errors.Is(err, c.want) || c.want == nil && err != nil) {
				t.Errorf("Update: %v, want %v", err, c.want)
			}
			f.expectUntouched("k", "new", db)
			expect.Equal(t, "the lock is free", f.guards[1].Update(context.Background(), "k", db.write("newer")), nil)
		})
	}
}

var errPanicked = errors.New("panicked")

func recovered(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	return f()
}

func TestUpdateThatCannotReachRedisDoesNotWrite(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]redistest.Match{
		"at all":         func(args []string) bool { return true },
		"for the intent": scriptOf("begin_update"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, proxy := broken(t, shared, Config{RedisTimeout: brisk, LeaseTTL: brisk})
			db := newRow("old")
			f.expectUntouched("k", "old", db)
			rule := proxy.On(match, redistest.ReplyError("READONLY for a while"))
			err := f.guards[0].Update(context.Background(), "k", func(context.Context) error {
				t.Error("written")
				return nil
			})
			failed, ok := errors.AsType[*RedisError](err)
			if !ok || failed.Op != "update" || failed.Key != "k" {
				t.Errorf("Update: %v", err)
			}
			rule.Remove()
			redistest.Await(t, "others store again", func() bool {
				mustGet(t, f.guards[1], "k", db.load)
				return f.exists(f.value("k"))
			})
		})
	}
}

func TestUpdateAnywayWritesAndLeavesAnInvalidationPending(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{UpdateAnyway: true})
	db := newRow("old")
	f.expectUntouched("k", "old", db)
	proxy.Refuse(true)
	err := f.guards[0].Update(context.Background(), "k", db.write("new"))
	if failed, ok := errors.AsType[*RedisError](err); !ok || failed.Op != "invalidate" {
		t.Errorf("Update: %v", err)
	}
	expect.Equal(t, "written", db.value.Load().(string), "new")
	expect.Equal(t, "here", mustGet(t, f.guards[0], "k", db.load), "new")
	proxy.Refuse(false)
	redistest.Await(t, "nothing is pending", func() bool { return f.guards[0].writes.Pending() == 0 })
	f.expectUntouched("k", "new", db)
}

// Whatever is lost at the end, an invalidation that Update could not send is pending, and nobody stores the old value.
func TestUpdateSurvivesFaultsAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, fault := range []redistest.Fault{
		redistest.SwallowReply, redistest.DropReply, redistest.CutBefore, redistest.Hold, redistest.HoldReply,
		redistest.ReplyError("LOADING Redis is loading"),
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			f, proxy := broken(t, shared, Config{RedisTimeout: patienceFor(fault), LeaseTTL: 2 * brisk})
			db := newRow("old")
			f.expectUntouched("k", "old", db)
			rule := proxy.On(scriptOf("end_update"), fault).Times(1)
			err := f.guards[0].Update(context.Background(), "k", db.write("new"))
			<-rule.Hit()
			if failed, ok := errors.AsType[*RedisError](err); err != nil && (!ok || failed.Op != "invalidate") {
				t.Errorf("Update: %v", err)
			}
			expect.Equal(t, "here", mustGet(t, f.guards[0], "k", db.load), "new")
			expect.Equal(t, "there", mustGet(t, f.guards[1], "k", db.load), "new")
			rule.Release()
			redistest.Await(t, "others store again", func() bool {
				expect.Equal(t, "there", mustGet(t, f.guards[1], "k", db.load), "new")
				return f.exists(f.value("k"))
			})
		})
	}
}
