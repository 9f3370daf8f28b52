package mutex

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// heldOver holds a lock while servers restart.
func heldOver(t *testing.T, servers []*redistest.Server, restart int) (l locktest.Lease, other locktest.Locks) {
	t.Helper()
	var addr string
	for _, s := range servers {
		addr += "," + s.Addr()
	}
	cfg := locktest.Config{Prefix: "restart", TTL: time.Minute, Timeout: redisTimeout}
	l, err := openLocks(t, addr[1:], cfg).Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers { // a request that is still under way would take the lock once more, after the restart
		rdb := s.Client(t)
		redistest.Await(t, s.Addr()+" has granted the lock", func() bool { return rdb.DBSize(t.Context()).Val() > 0 })
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
	l, other := heldOver(t, []*redistest.Server{server}, 1)
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
		var servers []*redistest.Server
		for range 3 {
			servers = append(servers, redistest.Start(t, settings...))
		}
		third := openLocks(t, servers[2].Addr(), locktest.Config{Prefix: "restart", TTL: time.Minute, Timeout: redisTimeout})
		other, err := third.Lock(t.Context(), "x") // so the quorum's has two of three
		expect.ErrorIs(t, err)
		l, again := heldOver(t, servers, 1)
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
		servers := []*redistest.Server{redistest.Start(t), redistest.Start(t), redistest.Start(t)}
		l, other := heldOver(t, servers, restart)
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
