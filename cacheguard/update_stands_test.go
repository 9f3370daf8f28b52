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
		for _, part := range []string{"level=WARN", "key=k", "by=" + g.cfg.Instance, "for=1h"} {
			if !strings.Contains(line, part) {
				t.Errorf("%q is not in %s", part, line)
			}
		}
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
	expect.ErrorIs(t, g.UpdateMany(context.Background(), []string{"k", "j"}, func(ctx context.Context) error {
		redistest.Await(t, "the log says so", func() bool {
			return len(lines(log(), `level=WARN msg="cacheguard: update stood for longer than UpdateTimeout`)) == 1 && strings.Contains(log(), `names="[\"j\" \"k\"]"`)
		})
		expect.Equal(t, "counted", g.Stats().Of("overdue_total"), 1)
		expect.Equal(t, "it is not done", g.Stats().Intents, 1)
		expect.Equal(t, "shown", g.observed().Troubles().Stands, `update of ["j" "k"] that has outlasted UpdateTimeout: others may write`)
		redistest.Await(t, "it keeps nobody from storing", func() bool { return !f.exists(f.intent("k")) })
		return nil
	}), rwlock.ErrLeaseLost)
	expect.Equal(t, "in the end", g.Stats().Intents, 0)
	in, err := g.Intend(t.Context(), Changes{Keys: []string{"k"}})
	expect.ErrorIs(t, err)
	redistest.Await(t, "an intent counts, too", func() bool { return g.Stats().Of("overdue_total") == 2 })
	expect.ErrorIs(t, in.Done(t.Context()), rwlock.ErrLeaseLost)
}
