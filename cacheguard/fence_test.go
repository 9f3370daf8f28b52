package cacheguard

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// fence stands between clients and a primary that is none any more. A client closes its connections when it hears of the new one. But one that it
// is about to dial just then, at the address that it asked for before, it keeps.
type fence struct {
	mu     sync.Mutex
	closed string // its address; "": none
	open   map[net.Conn]string
	holds  chan struct{} // the next dial says so here, and goes on with goesOn; nil: none
	goesOn chan struct{}
}

func newFence() *fence { return &fence{open: make(map[net.Conn]string)} }

// dial is a Dialer.
func (f *fence) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	f.mu.Lock()
	holds := f.holds
	f.holds = nil
	f.mu.Unlock()
	if holds != nil {
		close(holds)
		<-f.goesOn
		ctx = context.WithoutCancel(ctx)
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if addr == f.closed {
		return nil, errors.Join(errors.New("fenced"), conn.Close())
	}
	f.open[conn] = addr
	return conn, nil
}

// close keeps everybody from a server, and returns how many connections to it clients had kept.
func (f *fence) close(addr string) (kept int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = addr
	for conn, to := range f.open {
		if to == addr {
			delete(f.open, conn)
			if conn.Close() == nil {
				kept++
			}
		}
	}
	return kept
}

func (f *fence) lift() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = ""
}

// A client that dials while the primary changes reads from the old one, if that lives, until it follows the new one: what is old then is what
// that server has. The server's run id tells it from a fault.
func TestADialThatOverlapsAFailoverReadsFromTheOldPrimaryUntilThatFollows(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := redistest.StartSentinel(t)
	f := newFence()
	reader := s.FailoverClient(t, func(o *redis.FailoverOptions) {
		o.Dialer, o.PoolSize, o.DialTimeout, o.PoolTimeout, o.MaxRetries = f.dial, 1, redistest.Patience, redistest.Patience, -1
	})
	fleet := newFleetOn(t, reader, Config{TTL: time.Hour}, reader, s.FailoverClient(t))
	db := newRow("old")
	expect.Equal(t, "before", mustGet(t, fleet.guards[0], "k", db.load), "old")
	fleet.stored()
	before, old := runID(t, reader), s.Primary().Info("server")["run_id"]
	expect.Equal(t, "run id", before, old)

	holds := make(chan struct{})
	f.mu.Lock()
	f.holds, f.goesOn = holds, make(chan struct{})
	for conn := range f.open {
		_ = conn.Close() // the next request dials
	}
	f.mu.Unlock()
	dialled := make(chan struct{})
	go func() { // owner: the test; ends with the dial; joined below
		defer close(dialled)
		for reader.Ping(ctx).Err() != nil {
			continue // that had the connection which was closed
		}
	}()
	<-holds
	s.Primary().Pause()
	redistest.Await(t, "the replica is the primary", func() bool { return role(s.Replica()) == "master" })
	s.Forbear()
	redistest.Await(t, "the client has heard of it", func() bool {
		sub := reader.Subscribe(ctx, "somewhere")
		defer sub.Close()
		_, err := sub.Receive(ctx)
		return err == nil && s.Replica().Client(t).PubSubNumSub(ctx, "somewhere").Val()["somewhere"] > 0
	})
	s.Primary().Resume()
	close(f.goesOn)
	<-dialled

	db.value.Store("new")
	redistest.Await(t, "the new primary has invalidated it", func() bool { return fleet.guards[1].Invalidate(ctx, "k") == nil })
	olds, follows := 0, false
	for !follows {
		follows = role(s.Primary()) == "slave" // and has closed its clients' connections
		first := runID(t, reader)
		got := mustGet(t, fleet.guards[0], "k", db.load)
		switch {
		case got == "new":
		case follows || first != old:
			t.Errorf("%q from %s, not from the old primary, %s", got, first, old)
		default:
			olds++
			pause(100 * time.Millisecond)
		}
	}
	t.Logf("%d old answers", olds)
	expect.Equal(t, "afterwards", mustGet(t, fleet.guards[0], "k", db.load), "new")
}

// runID is of the server that a client with one connection talks to.
func runID(t *testing.T, rdb *redis.Client) (id string) {
	t.Helper()
	redistest.Await(t, "a run id", func() bool {
		id = rdb.InfoMap(context.Background(), "server").Item("Server", "run_id")
		return id != ""
	})
	return id
}
