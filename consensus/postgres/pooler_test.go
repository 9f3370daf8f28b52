package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/servers"
)

// transacting is a PgBouncer that gives a client a server's connection for a transaction only. Prepared statements do not work behind it.
func transacting(t *testing.T) (addr string) {
	t.Helper()
	return servers.StartPgBouncer(t, "transaction", examples.Addr(), answers) + " default_query_exec_mode=exec"
}

func lockerOn(t *testing.T, pool *pgxpool.Pool) *Locker {
	t.Helper()
	k, err := New(pool, Config{Prefix: t.Name(), TTL: 2 * time.Second, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return k
}

func TestBehindAPoolerThatKeepsNoSessionsNoTwoHoldALock(t *testing.T) {
	addr := transacting(t)
	for range 3 {
		first, err := lockerOn(t, newPool(t, addr)).Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		wait, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		second, err := lockerOn(t, newPool(t, addr)).Lock(wait, "x")
		cancel()
		if err == nil && first.Context().Err() == nil {
			t.Error("two hold the lock")
		}
		if err == nil {
			_ = second.Unlock(t.Context()) // it may have been lost
		}
		_ = first.Unlock(t.Context()) // as above
	}
}

func TestALockIsLostWhenAPoolerGivesItsSessionToAnother(t *testing.T) {
	addr := transacting(t)
	k := lockerOn(t, newPool(t, addr))
	lease, err := k.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	other, err := newPool(t, addr).Begin(t.Context()) // has the server's connection that was used last
	if err == nil {
		_, err = other.Exec(t.Context(), "SELECT 1")
	}
	if err != nil {
		t.Fatal(err)
	}
	<-lease.Context().Done()
	expect.ErrorIs(t, context.Cause(lease.Context()), ErrLeaseLost)
	expect.ErrorIs(t, other.Rollback(t.Context()), nil)
}

func TestSelfCheckFindsAPoolerThatKeepsNoSessionsAndATableThatIsNotThere(t *testing.T) {
	for name, addr := range map[string]string{
		"PostgreSQL": examples.Addr(), "PgBouncer": servers.StartPgBouncer(t, "session", examples.Addr(), answers),
	} {
		if err := SelfCheck(t.Context(), newPool(t, addr)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 3 {
		if err := SelfCheck(t.Context(), newPool(t, transacting(t))); err == nil || !strings.Contains(err.Error(), "pooler") {
			t.Errorf("PgBouncer in transaction mode: %v", err)
		}
	}
	if err := SelfCheck(t.Context(), newPool(t, examples.Addr()+" search_path=nowhere")); err == nil || !strings.Contains(err.Error(), "cacheguard_locks") {
		t.Errorf("without the table: %v", err)
	}
}
