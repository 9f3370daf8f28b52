package mysql

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
)

// TestWhoVanishesBeforeItsClaimKeepsNobodyWaiting has a process stand still, connected, between the answer to its question for the session's
// lock and its next statement.
func TestWhoVanishesBeforeItsClaimKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	db := connect(t, examples.Addr())
	defer db.Close()
	for name, waits := range map[string]bool{"tried": false, "waited": true} {
		s, err := (&driver{db: db, ttl: time.Second, timeout: time.Minute}).Open(t.Context())
		expect.ErrorIs(t, err)
		taken, err := s.Queue(t.Context(), name, waits)
		expect.ErrorIs(t, err)
		expect.Equal(t, name, taken, true)
		other, err := (&driver{db: db, ttl: time.Minute, timeout: time.Minute}).Open(t.Context())
		expect.ErrorIs(t, err)
		taken, err = other.Queue(t.Context(), name, true)
		expect.ErrorIs(t, err)
		expect.Equal(t, name, taken, true)
		s.Discard()
		other.Discard()
	}
}

// TestARefusedConnectionIsAsItWas asks for a lock that another has, and looks what the connection of the pool has of that.
func TestARefusedConnectionIsAsItWas(t *testing.T) {
	t.Parallel()
	holder := open(t, examples.Addr(), locktest.Config{Prefix: t.Name(), TTL: time.Minute})
	l, err := holder.Lock(t.Context(), "x")
	expect.ErrorIs(t, err)
	db := connect(t, examples.Addr())
	defer db.Close()
	db.SetMaxOpenConns(1)
	k, err := New(db, Config{Prefix: t.Name(), TTL: time.Minute})
	expect.ErrorIs(t, err)
	defer k.Close()
	_, err = k.TryLock(t.Context(), "x")
	expect.ErrorIs(t, err, ErrNotAcquired)
	var session, global int
	expect.ErrorIs(t, db.QueryRowContext(t.Context(), `SELECT @@SESSION.wait_timeout, @@GLOBAL.wait_timeout`).Scan(&session, &global))
	expect.Equal(t, "seconds that it may idle", session, global)
	expect.ErrorIs(t, l.Unlock(t.Context()))
}
