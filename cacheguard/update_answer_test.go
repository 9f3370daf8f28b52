package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

// Whatever write does, it may have written.
func TestUpdateAnywayInvalidatesWhateverWriteDoes(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(){
		"returns": func() {}, "panics": func() { panic("write") }, "calls Goexit": runtime.Goexit,
	}, func(t *testing.T, _ string, end func()) {
		f, proxy := broken(t, shared, Config{UpdateAnyway: true})
		db := newRow("old")
		f.expectUntouched("k", "old", db)
		proxy.On(scriptOf("begin_update"), redistest.ReplyError("NOPERM not for you"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = recovered(func() error {
				return f.guards[0].Update(context.Background(), "k", func(context.Context) error {
					expect.Equal(t, "meanwhile", mustGet(t, f.guards[1], "k", db.load), "old") // and stored
					db.value.Store("new")
					end()
					return nil
				})
			})
		}()
		<-done
		f.expectUntouched("k", "new", db)
	})
}

// Close gives the lock away while write runs. A write that ignores the end of its context gets an error from Update.
func TestAnUpdateThatWasClosedDuringItsWriteSaysSo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	db := newRow("old")
	w := beginUpdate(f, 0, db, "new", "k")
	ctx := <-w.began
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = f.guards[0].Close()
	}()
	<-ctx.Done()
	expect.Equal(t, "another", f.guards[1].Update(context.Background(), "k", db.write("newer")), nil)
	w.release <- nil
	expect.ErrorIs(t, <-w.done, rwlock.ErrClosed)
	<-closed
	f.guards = f.guards[1:]
	f.expectUntouched("k", "newer", db)
}

func TestAnUpdateWhoseContextEndedBeforeItsWriteSaysSo(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{UpdateAnyway: true})
	g, db, why := f.guards[0], newRow("old"), errors.New("why")
	check := func(ctx context.Context) {
		t.Helper()
		err := g.Update(ctx, "k", func(context.Context) error { panic("written") })
		for _, want := range []error{rwlock.ErrNotAcquired, context.Canceled, why} {
			expect.Equal(t, fmt.Sprintf("%q matches %q", err, want), errors.Is(err, want), true)
		}
		redistest.Await(t, "what a late copy of begin_update.lua left has expired", func() bool { return !f.exists(f.intent("k")) })
		f.expectUntouched("k", "old", db)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	rule := proxy.On(scriptOf("begin_update"), redistest.HoldReply)
	go func() { // owner: the test; ends with the rule
		<-rule.Hit()
		cancel(why)
		rule.Release()
	}()
	check(ctx)
	check(ctx)
}

// Redis is well: UpdateAnyway is not for this.
func TestAnUpdateThatLostItsLockBeforeItsWriteDoesNotWrite(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), Config{UpdateAnyway: true, LeaseTTL: time.Second}, proxy.Client(t), shared.Client(t))
	warm(t, newFleetOn(t, shared.Client(t), Config{}, shared.Client(t)))
	rule := proxy.On(scriptOf("begin_update"), redistest.HoldReply)
	locks := locksOf(t, f.guards[1])
	go func() { // owner: the test; ends with the rule
		<-rule.Hit()
		_, _ = locks.Revoke(context.Background(), "k") // the error of Update tells
		<-time.After(3 * time.Second)                  // three leases
		rule.Release()
	}()
	err := f.guards[0].Update(context.Background(), "k", func(context.Context) error { panic("written") })
	expect.Equal(t, fmt.Sprint(err), errors.Is(err, rwlock.ErrNotAcquired), true)
}

// Otherwise nobody would know that Update excludes nobody any more.
func TestAnUpdateThatWritesWithoutTheLockReportsWhy(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{UpdateAnyway: true})
	invalidates, repeats := scriptOf("invalidate"), scriptOf("say") // of the invalidation, where that was a moment ago
	proxy.On(func(args []string) bool { return !invalidates(args) && !repeats(args) }, redistest.ReplyError("NOPERM not for you"))
	mustInvalidate(t, f.guards[0], "k") // knows the script
	before, db := f.events.redisErrors.Load(), newRow("old")
	expect.Equal(t, "Update", f.guards[0].Update(context.Background(), "k", db.write("new")), nil)
	expect.Equal(t, "reported", f.events.redisErrors.Load()-before, 1)
}

func TestAnUpdateWhoseLockCannotBeGivenBackIsDone(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{LeaseTTL: bearing})
	db, ends := newRow("old"), scriptOf("end_update")
	f.expectUntouched("k", "old", db)
	g := f.guards[1]
	end := g.keys.EndUpdate(g.keys.ValueKey("other"), "nobody", g.writes.Notice("other"), protocol.Filling{})
	expect.Must(t, end.Run(t.Context(), f.redis).Err()) // it makes the script known
	var ended atomic.Bool
	rule := proxy.On(func(args []string) bool { return ended.Load() || ends(args) && ended.Swap(true) }, redistest.CutBefore)
	taken := beginUpdate(f, 1, db, "old", "k") // otherwise one request ends the update and its lock
	<-taken.began
	done := make(chan error, 1)
	go func() { done <- f.guards[0].Update(context.Background(), "k", db.write("new")) }()
	redistest.Await(t, "it waits", func() bool { return f.lockInfo("k").WaitingWriters == 1 })
	taken.release <- nil
	err := <-done
	<-rule.Hit()
	if errors.As(err, new(*RedisError)) || err == nil || errors.Is(err, rwlock.ErrLeaseLost) {
		t.Errorf("Update: %v", err)
	}
	rule.Remove()
	f.expectUntouched("k", "new", db)
	expect.Equal(t, "the next", f.guards[1].Update(context.Background(), "k", db.write("newer")), nil)
}

func TestWhateverWriteDoesTheUpdateEnds(t *testing.T) {
	t.Parallel()
	failure := errors.New("constraint violated")
	type example struct {
		write func(context.Context, context.CancelFunc) error
		want  error
	}
	expect.Each(t, map[string]example{
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
	}, func(t *testing.T, _ string, c example) {
		f := newFleet(t, standalone(t), 2, Config{LeaseTTL: 500 * time.Millisecond}) // one write is slower
		db := newRow("old")
		f.expectUntouched("k", "old", db)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		err := begins(t, func(begin func()) error {
			return recovered(func() error {
				return f.guards[0].Update(ctx, "k", func(ctx context.Context) error {
					begin()
					db.value.Store("new")
					return c.write(ctx, cancel)
				})
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
	expect.Each(t, map[string]redistest.Match{
		"at all":         func(args []string) bool { return true },
		"for the intent": scriptOf("begin_update"),
	}, func(t *testing.T, _ string, match redistest.Match) {
		f, proxy := broken(t, shared, Config{RedisTimeout: brisk, LeaseTTL: brisk})
		db := newRow("old")
		f.expectUntouched("k", "old", db)
		rule := proxy.On(match, redistest.ReplyError("READONLY for a while"))
		err := f.guards[0].Update(context.Background(), "k", func(context.Context) error {
			t.Error("written")
			return nil
		})
		var failed *RedisError
		ok := errors.As(err, &failed)
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

func TestUpdateAnywayWritesAndLeavesAnInvalidationPending(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{UpdateAnyway: true})
	db := newRow("old")
	f.expectUntouched("k", "old", db)
	proxy.Refuse(true)
	expectRedisError(t, f.guards[0].Update(context.Background(), "k", db.write("new")), "invalidate", "")
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
		expect.Beside(t, string(fault), func(t *testing.T) {
			f, proxy := broken(t, shared, Config{RedisTimeout: patienceFor(fault), LeaseTTL: 2 * brisk})
			db := newRow("old")
			f.expectUntouched("k", "old", db)
			rule := proxy.On(scriptOf("end_update"), fault).Times(1)
			err := f.guards[0].Update(context.Background(), "k", db.write("new"))
			<-rule.Hit()
			if failed := (*RedisError)(nil); err != nil && (!errors.As(err, &failed) || failed.Op != "invalidate") {
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
