package postgres

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
	pool := newPool(t, examples.Addr())
	for name, waits := range map[string]bool{"tried": false, "waited": true} {
		s, err := (&driver{pool: pool, ttl: time.Second, timeout: time.Minute}).Open(t.Context())
		expect.ErrorIs(t, err)
		taken, err := s.Queue(t.Context(), name, waits)
		expect.ErrorIs(t, err)
		expect.Equal(t, name, taken, true)
		other, err := (&driver{pool: pool, ttl: time.Minute, timeout: time.Minute}).Open(t.Context())
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
	pool := newPool(t, examples.Addr()+" pool_max_conns=1")
	k, err := New(pool, Config{Prefix: t.Name(), TTL: time.Minute})
	expect.ErrorIs(t, err)
	defer k.Close()
	_, err = k.TryLock(t.Context(), "x")
	expect.ErrorIs(t, err, ErrNotAcquired)
	for _, setting := range []string{"idle_session_timeout", "client_connection_check_interval"} {
		var now string
		expect.ErrorIs(t, pool.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&now))
		expect.Equal(t, setting, now, "0")
	}
	expect.ErrorIs(t, l.Unlock(t.Context()))
}
