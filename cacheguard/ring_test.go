package cacheguard

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/segment"
	"github.com/cacheguard/go/semaphore"
)

// These tests are all there is of a Ring, as docs/production.md says.

func newRing(t *testing.T, addrs map[string]string) *redis.Ring {
	t.Helper()
	ring := redis.NewRing(&redis.RingOptions{Addrs: addrs})
	t.Cleanup(func() { _ = ring.Close() })
	return ring
}

// onRing is the arena of a Ring of two.
func onRing(t *testing.T) arena {
	addrs := map[string]string{"a": redistest.Start(t).Addr(), "b": redistest.Start(t).Addr()}
	return arena{client: func(testing.TB) client { return newRing(t, addrs) }}
}

// ringClient is a Ring with the user's own methods.
type ringClient struct{ *redis.Ring }

func TestWhatNeedsOnePlaceRefusesARing(t *testing.T) {
	t.Parallel()
	ring := newRing(t, map[string]string{"a": shared.Addr()})
	for what, refusal := range map[string]error{
		"mutex":         last(mutex.New(ring, mutex.Config{Prefix: "test"})),
		"mutex, within": last(mutex.New(ringClient{ring}, mutex.Config{Prefix: "test"})),
		"Quorum":        last(mutex.NewQuorum([]mutex.Redis{ring, shared.Client(t), shared.Client(t)}, mutex.Config{Prefix: "test"})),
		"rwlock":        last(rwlock.New(ring, rwlock.Config{Prefix: "test"})),
		"semaphore":     last(semaphore.New(ring, semaphore.Config{Prefix: "test", Permits: 1})),
		"cas":           last(cas.New(ring, cas.Config{Prefix: "test"})),
		"segment":       last(segment.New(ring, segment.Config{Prefix: "test"})),
		"Local":         last(New(ring, withLocal)),
		"Limiter":       last(semaphore.NewLimiter(ring, "loads", semaphore.Config{Prefix: "test", Permits: 1})),
	} {
		if refusal == nil || !strings.Contains(refusal.Error(), "Ring") {
			t.Errorf("%s: %v", what, refusal)
		}
	}
}

func last[T any](_ T, err error) error { return err }

func TestOnARingWhatOneShardDoesWorksAndAWriteNeedsAnotherLock(t *testing.T) {
	t.Parallel()
	a := onRing(t)
	for _, name := range []string{
		"ManyCallersOnManyInstancesShareOneLoad", "InvalidateStopsARunningLoadFromStoring", "TagsReachAllEntriesThatHaveThem", "CloseLeavesNothingBehind",
	} {
		for _, p := range promises {
			if p.name == name {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					p.test(t, a)
				})
			}
		}
	}
	locks, err := mutex.New(shared.Client(t), mutex.Config{Prefix: t.Name(), RedisTimeout: bearing})
	expect.Equal(t, "error", err, nil)
	defer func() { _ = locks.Close() }() // always nil
	for _, cfg := range []Config{{UpdateAnyway: true}, {WriteLock: locks}} {
		said, text := logged()
		cfg.Logger = said.Logger
		f := newFleet(t, a, 1, cfg)
		expect.Equal(t, "SelfCheck", f.guards[0].SelfCheck(redistest.Patiently(t)), nil)
		expect.Equal(t, "SelfCheck says what is refused", strings.Contains(text(), "Update, UpdateMany and Put are refused"), cfg.WriteLock == nil)
		db := newRow("old")
		c := rows(t, f, db)[0]
		for name, write := range map[string]func() error{
			"Update": func() error { return c.Update(context.Background(), 1, db.write("new")) },
			"Put":    func() error { return c.Put(context.Background(), 1, db.saves("new")) },
		} {
			db.value.Store("old")
			mustInvalidate(t, f.guards[0], rowKey)
			err := write()
			wrote := cfg.WriteLock != nil
			if wrote != (err == nil) || !wrote && !strings.Contains(err.Error(), "Ring") {
				t.Errorf("%s: %v", name, err)
			}
			expect.Equal(t, name+", written", Written(err), wrote)
			v, err := c.Get(context.Background(), 1)
			expect.Equal(t, "error", err, nil)
			expect.Equal(t, name+", changed", v == "new", wrote)
		}
	}
}
