package cacheguard

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// peeked is a Cache of which every load of an even id finds nothing.
func peeked(t *testing.T, cfg Config, f *fleet) (*Cache[int, string], *fleet) {
	t.Helper()
	if f == nil {
		f = newFleet(t, standalone(t), 1, cfg)
	}
	c, err := NewCache(f.guards[0], CacheConfig[int, string]{Name: "things", Patience: min(cfg.StaleFor, time.Minute), Load: func(_ context.Context, id int) (string, error) {
		if id%2 == 0 {
			return "", ErrNotFound
		}
		return "v", nil
	}})
	expect.Must(t, err)
	return c, f
}

func peeks(t *testing.T, c *Cache[int, string], id int, want string, how Outcome, why error) {
	t.Helper()
	expect.Returns(t, want, how, why)(c.Peek(t.Context(), id))
}

func TestPeekFindsWhatThereIsAndLoadsNothing(t *testing.T) {
	t.Parallel()
	c, f := peeked(t, Config{}, nil)
	peeks(t, c, 1, "", "", ErrNotCached)
	expect.Equal(t, "loads", f.events.loads.Load(), 0)
	expect.Equal(t, "a lease", f.exists(f.lease(c.Key(1))), false)
	for _, id := range []int{1, 2} {
		_, _ = c.Get(t.Context(), id) // 2 is absent
	}
	redistest.Await(t, "both are stored", func() bool { return f.exists(f.value(c.Key(1))) && f.exists(f.value(c.Key(2))) })
	peeks(t, c, 1, "v", Hit, nil)
	peeks(t, c, 2, "", Negative, ErrNotFound)
	expect.ErrorIs(t, c.Invalidate(t.Context(), 1))
	peeks(t, c, 1, "", "", ErrNotCached)
	expect.Equal(t, "loads", f.events.loads.Load(), 2)
	f.guards[0].Bypass(true)
	peeks(t, c, 2, "", "", ErrNotCached)
}

func TestPeekReturnsAStaleValueAndRefreshesNothing(t *testing.T) {
	t.Parallel()
	c, f := peeked(t, Config{TTL: time.Millisecond, StaleFor: time.Hour}, nil)
	_, _ = c.Get(t.Context(), 1)
	redistest.Await(t, "it is stale", func() bool {
		v, how, err := c.Peek(t.Context(), 1)
		return v == "v" && how == Stale && err == nil
	})
	expect.ErrorIs(t, f.guards[0].Close())
	expect.Equal(t, "loads", f.events.loads.Load(), 1)
	peeks(t, c, 1, "", "", ErrClosed)
}

func TestPeekFindsWhatIsInTheLocalTier(t *testing.T) {
	t.Parallel()
	c, _ := peeked(t, Config{Local: LocalConfig{MaxEntries: 10}}, nil)
	redistest.Await(t, "the tier has it", func() bool {
		_, _ = c.Get(t.Context(), 1)
		_, how, err := c.Peek(t.Context(), 1)
		return how == Local && err == nil
	})
}

func TestPeekFindsNothingWhileRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: brisk})
	c, _ := peeked(t, Config{}, f)
	_, _ = c.Get(t.Context(), 1)
	rule := proxy.On(steps["get"], redistest.HoldReply)
	defer rule.Remove()
	peeks(t, c, 1, "", "", ErrNotCached)
}

func TestEachStateOfAnEntryHasItsAction(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name string
		state
		action
	}{
		{"missing", missing, doRebuild},
		{"fresh", fresh, doServe},
		{"ageing", ageing, doRefresh},
		{"stale", stale, doRefresh},
		{"expired", expired, doRebuild},
		{"revoked", revoked, doRebuild},
		{"unusable", unusable, doRebuild},
		{"alien entry", alienEntry, doLoadApart},
		{"unreachable", unreachable, doBypass},
	}
	taken := make(map[action]bool)
	for i, row := range rows {
		expect.Equal(t, row.name+": its place in the table", int(row.state), i) // a new state needs a row
		expect.Equal(t, row.name, decide(row.state), row.action)
		taken[row.action] = true
	}
	expect.Equal(t, "states", len(rows), int(unreachable)+1)
	expect.Equal(t, "actions", len(taken), int(doLoadApart)+1)
}
