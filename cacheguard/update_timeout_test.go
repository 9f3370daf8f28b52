package cacheguard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

func TestAWriteThatIgnoresItsContextDoesNotHoldOthersUpForEver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: brisk, UpdateTimeout: brisk})
	db := newRow("old")
	begun, release, first := make(chan context.Context, 1), make(chan struct{}), make(chan error, 1)
	go func() { // owner: the test; ends with Update; joined by receiving
		first <- begins(t, func(begin func()) error {
			return f.guards[0].Update(context.Background(), "k", func(ctx context.Context) error {
				begin()
				begun <- ctx
				<-release
				return nil
			})
		})
	}()
	ctx := <-begun
	<-ctx.Done()
	expect.ErrorIs(t, context.Cause(ctx), rwlock.ErrLeaseLost)
	expect.Equal(t, "another Update", f.guards[1].Update(context.Background(), "k", db.write("new")), nil)
	redistest.Await(t, "loads store again", func() bool {
		expect.Equal(t, "Get", mustGet(t, f.guards[1], "k", db.load), "new")
		return f.exists(f.value("k"))
	})
	close(release)
	err := <-first
	expect.ErrorIs(t, err, rwlock.ErrLeaseLost)
	expect.Says(t, err, fmt.Sprintf("UpdateTimeout (%v)", brisk))
	f.expectUntouched("k", "new", db) // what write may have written is not served from before
}

func TestAWriteWithinUpdateTimeoutHoldsItsLockHoweverLongTheLeaseIs(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]time.Duration{"a minute": time.Minute, "no limit": off}, func(t *testing.T, _ string, limit time.Duration) {
		f := newFleet(t, standalone(t), 1, Config{LeaseTTL: brisk, UpdateTimeout: limit})
		var err error
		for range 5 { // a process that has no processor for as long as a lease loses it
			if err = f.guards[0].Update(context.Background(), "k", func(ctx context.Context) error {
				hold(t, 5*brisk/2) // more than two leases
				held := f.exists(f.intent("k"))
				if ctx.Err() == nil {
					expect.Equal(t, "intent", held, true)
				}
				return ctx.Err()
			}); err == nil {
				return
			}
		}
		t.Error(err)
	})
}

func TestUpdateTimeoutIsNotShorterThanALease(t *testing.T) {
	t.Parallel()
	expect.Says(t, expect.Err(New(shared.Client(t), Config{UpdateTimeout: time.Second})), "Config.UpdateTimeout")
	expect.Equal(t, "default", Config{}.withDefaults().UpdateTimeout, time.Minute)
	expect.Equal(t, "default of a long lease", Config{LeaseTTL: time.Hour}.withDefaults().UpdateTimeout, time.Hour)
}

// Readers wait for it, and somebody looks for the reason.
func TestAnUpdateThatStandsIsToldAsAnIntentIs(t *testing.T) {
	t.Parallel()
	cfg, log := logged()
	f := newFleet(t, standalone(t), 2, cfg)
	g := f.guards[0]
	_, none := g.writes.Intents()
	expect.Equal(t, "before", g.Stats().Intents == 0 && none.IsZero() && g.observed().Troubles().Stands == "", true)
	expect.ErrorIs(t, g.Update(t.Context(), "k", func(ctx context.Context) error {
		expect.Equal(t, "intents", g.Stats().Intents, 1)
		expect.Equal(t, "the oldest is young", g.Stats().OldestIntent < time.Hour, true)
		expect.Equal(t, "it is", g.observed().Troubles().Stands, `update of ["k"]`)
		expect.ErrorIs(t, Also(ctx, Changes{Keys: []string{"a"}, Tags: []string{"t"}}))
		expect.Equal(t, "intents with what it has named", g.Stats().Intents, 1)
		f.sinceAnHour("k")
		waits, stop := context.WithCancel(t.Context())
		got := asyncCtx(waits, f.guards[1], "k", unwanted[string](t))
		redistest.Await(t, "who waits says so", func() bool { return len(lines(log(), "a load waits for an Update")) == 1 })
		stop()
		<-got
		line := lines(log(), "a load waits for an Update")[0]
		expect.Says(t, line, "level=WARN", "key=k", "by="+g.cfg.Instance, "for=1h")
		return nil
	}))
	expect.Equal(t, "in the end", g.Stats().Intents, 0)
	expect.Equal(t, "it was", g.observed().Troubles().Stands, "")
	in, err := g.Intend(t.Context(), Changes{Keys: []string{"k"}, Tags: []string{"t"}})
	expect.ErrorIs(t, err)
	expect.Equal(t, "an intent", g.observed().Troubles().Stands, `intent on ["k" "t"]`)
	expect.ErrorIs(t, in.Done(t.Context()))
}

// sinceAnHour makes the writers of the key older.
func (f *fleet) sinceAnHour(key string) {
	f.t.Helper()
	all, err := f.redis.HGetAll(f.t.Context(), f.intent(key)).Result()
	expect.ErrorIs(f.t, err)
	for field, value := range all {
		if !strings.HasPrefix(field, "holder:") {
			continue
		}
		var since int64
		_, instance, _ := strings.Cut(value, " ")
		_, err := fmt.Sscan(value, &since)
		expect.ErrorIs(f.t, err)
		expect.ErrorIs(f.t, f.redis.HSet(f.t.Context(), f.intent(key), field, fmt.Sprint(since-time.Hour.Milliseconds(), " ", instance)).Err())
	}
}

func TestAnUpdateThatOutlastsUpdateTimeoutIsLoggedCountedAndShownUntilItsWriteReturns(t *testing.T) {
	t.Parallel()
	cfg, log := logged()
	cfg.LeaseTTL, cfg.UpdateTimeout = brisk, brisk
	f := newFleet(t, standalone(t), 1, cfg)
	g := f.guards[0]
	expect.ErrorIs(t, begins(t, func(begin func()) error {
		return g.UpdateMany(context.Background(), []string{"k", "j"}, func(ctx context.Context) error {
			begin()
			redistest.Await(t, "the log says so", func() bool {
				return len(lines(log(), `level=WARN msg="cacheguard: update stood for longer than UpdateTimeout`)) == 1 && strings.Contains(log(), `names="[\"j\" \"k\"]"`)
			})
			expect.Equal(t, "counted", g.Stats().Of("overdue_total"), 1)
			expect.Equal(t, "it is not done", g.Stats().Intents, 1)
			expect.Equal(t, "shown", g.observed().Troubles().Stands, `update of ["j" "k"] that has outlasted UpdateTimeout: others may write`)
			redistest.Await(t, "it keeps nobody from storing", func() bool { return !f.exists(f.intent("k")) })
			return nil
		})
	}), rwlock.ErrLeaseLost)
	expect.Equal(t, "in the end", g.Stats().Intents, 0)
	in, err := g.Intend(t.Context(), Changes{Keys: []string{"k"}})
	expect.ErrorIs(t, err)
	redistest.Await(t, "an intent counts, too", func() bool { return g.Stats().Of("overdue_total") == 2 })
	expect.ErrorIs(t, in.Done(t.Context()), rwlock.ErrLeaseLost)
}
