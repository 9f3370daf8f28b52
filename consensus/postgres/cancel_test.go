package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// heldCancels keeps the end of each request to cancel from its sender.
type heldCancels struct {
	handled chan struct{} // receives when the server has dealt with a request
	proceed chan struct{} // closed: no end is kept back
	left    chan struct{} // receives when the sender waits no longer
}

func (h *heldCancels) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &heldUp{Conn: conn, by: h}, nil
}

// heldUp is a connection to PostgreSQL, for a request to cancel or for something else.
type heldUp struct {
	net.Conn

	by        *heldCancels
	cancels   bool
	impatient sync.Once
}

func (c *heldUp) Write(b []byte) (int, error) {
	const cancelRequest = 80877102
	c.cancels = len(b) >= 8 && binary.BigEndian.Uint32(b[4:]) == cancelRequest
	return c.Conn.Write(b)
}

func (c *heldUp) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cancels {
		c.by.handled <- struct{}{}
		<-c.by.proceed
	}
	return n, err
}

func (c *heldUp) SetDeadline(t time.Time) error {
	if c.cancels && !t.IsZero() {
		c.impatient.Do(func() { c.by.left <- struct{}{} })
	}
	return c.Conn.SetDeadline(t)
}

// A server signals a session more than once for one request, so the last signal could meet the next statement.
func TestAConnectionServesNobodyElseBeforeTheRequestToCancelItsWaitHasEnded(t *testing.T) {
	h := &heldCancels{handled: make(chan struct{}, 1), proceed: make(chan struct{}), left: make(chan struct{}, 1)}
	cfg, err := pgxpool.ParseConfig(examples.Addr())
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.DialFunc = h.dial
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	k, err := New(pool, Config{Prefix: t.Name(), TTL: time.Hour, Timeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	other, err := New(newPool(t, examples.Addr()), Config{Prefix: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	held, err := other.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error)
	go func() { // owner: the test; ends with ctx; joined below
		_, err := k.Lock(ctx, "x")
		waited <- err
	}()
	redistest.Await(t, "it waits", func() bool { return asking(t, examples.Addr(), t.Name(), "x") == 2 })
	cancel()
	expect.ErrorIs(t, <-waited, ErrNotAcquired, context.Canceled)
	<-h.handled
	redistest.Await(t, "the wait has ended", func() bool { return asking(t, examples.Addr(), t.Name(), "x") == 1 })
	for range 50 { // requests to the server: time to give the connection back
		_ = asking(t, examples.Addr(), t.Name(), "x")
		expect.Equal(t, "connections in use", pool.Stat().AcquiredConns(), 1)
	}
	select {
	case <-h.left:
		t.Error("the request to cancel was given up")
	default:
	}
	close(h.proceed)
	redistest.Await(t, "the connection is given back", func() bool { return pool.Stat().AcquiredConns() == 0 })
	expect.Equal(t, "it can be used again", pool.Stat().TotalConns(), 1)
	expect.ErrorIs(t, held.Unlock(t.Context()), nil)
}

func TestWaitsThatAreGivenUpCancelNoStatementOfOthers(t *testing.T) {
	for name, addr := range map[string]string{"PostgreSQL": examples.Addr(), "PgBouncer": servers.StartPgBouncer(t, "session", examples.Addr(), answers)} {
		t.Run(name, func(t *testing.T) {
			k, err := New(newPool(t, addr), Config{Prefix: t.Name(), Timeout: 10 * time.Second, TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			other, err := New(newPool(t, addr), Config{Prefix: t.Name()})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			held, err := other.Lock(t.Context(), "taken")
			if err != nil {
				t.Fatal(err)
			}
			for range 300 {
				giveUp(t, k, addr)
				if err := k.Do(t.Context(), "free", func(context.Context, *Lease) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			expect.ErrorIs(t, held.Unlock(t.Context()), nil)
		})
	}
}

// answers reports whether there is a PostgreSQL at the address.
func answers(address string) bool {
	conn, err := pgx.Connect(context.Background(), address)
	if err != nil {
		return false
	}
	return conn.Close(context.Background()) == nil
}

// giveUp waits for a lock that is taken until the wait is in the database, and then no longer.
func giveUp(t *testing.T, k *Locker, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
	defer cancel()
	if _, err := k.Lock(ctx, "taken"); !errors.Is(err, context.DeadlineExceeded) { // and ErrNotAcquired, if it has heard of the other by then
		t.Fatal(err)
	}
}
