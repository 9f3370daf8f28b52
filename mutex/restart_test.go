package mutex

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// heldOver holds a lock while servers restart.
func heldOver(t *testing.T, prefix string, servers []*redistest.Server, restart int) (l locktest.Lease, other locktest.Locks) {
	t.Helper()
	var addr string
	for _, s := range servers {
		addr += "," + s.Addr()
	}
	cfg := locktest.Config{Prefix: prefix, TTL: time.Minute, Timeout: redisTimeout}
	l, err := openLocks(t, addr[1:], cfg).Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers { // a request that is still under way would take the lock once more, after the restart
		rdb := s.Client(t)
		redistest.Await(t, s.Addr()+" has granted the lock", func() bool { return rdb.Exists(t.Context(), lockKey(prefix, "x")).Val() > 0 })
	}
	other = openLocks(t, addr[1:], cfg)
	for _, s := range servers[:restart] {
		s.Restart()
	}
	return l, other
}

func TestALockOutlivesTheRestartOfARedisThatPersistsIt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	l, other := heldOver(t, "restart", []*redistest.Server{server}, 1)
	_, err := other.TryLock(t.Context(), "x")
	expect.ErrorIs(t, err, ErrNotAcquired)
	expect.ErrorIs(t, l.Unlock(t.Context()), nil)
	next, err := other.TryLock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "the fence grows", next.Fence() > l.Fence(), true)
}

// A limit, and why NewQuorum asks for persistence: one server is enough.
func TestAQuorumForgetsALockOfABareMajorityWhenOneOfItComesBackEmpty(t *testing.T) {
	t.Parallel()
	for _, persists := range []bool{false, true} {
		var settings []string
		if persists {
			settings = []string{"--appendonly", "yes", "--appendfsync", "always"}
		}
		servers, prefix := redistest.SharedServers(t, 3), "test-"+rand.Text()
		servers[0] = redistest.Start(t, settings...) // that starts again
		third := openLocks(t, servers[2].Addr(), locktest.Config{Prefix: prefix, TTL: time.Minute, Timeout: redisTimeout})
		other, err := third.Lock(t.Context(), "x") // so the quorum's has two of three
		expect.ErrorIs(t, err)
		l, again := heldOver(t, prefix, servers, 1)
		expect.ErrorIs(t, other.Unlock(t.Context()))
		_, err = again.TryLock(t.Context(), "x")
		if err != nil && !persists { // it has met connections that were gone
			_, err = again.Lock(t.Context(), "x")
		}
		if persists {
			expect.ErrorIs(t, err, ErrNotAcquired)
		} else {
			expect.ErrorIs(t, err)
		}
		expect.Equal(t, "the first one trusts its lease", l.Context().Err(), nil)
	}
}

func TestAQuorumForgetsALockWhenAMajorityRestartsThatPersistsNothing(t *testing.T) {
	t.Parallel()
	for restart, forgotten := range []bool{false, false, true} {
		servers := redistest.SharedServers(t, 3)
		for i := range restart {
			servers[i] = redistest.Start(t)
		}
		l, other := heldOver(t, "test-"+rand.Text(), servers, restart)
		next, err := other.TryLock(t.Context(), "x")
		if !forgotten {
			expect.ErrorIs(t, err, ErrNotAcquired)
			continue
		}
		if err != nil { // it has met connections that were gone
			next, err = other.Lock(t.Context(), "x")
		}
		if err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, "the fence grows", next.Fence() > l.Fence(), true)
	}
}
