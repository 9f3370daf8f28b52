package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A primary that is lost to a failover may cost loads. It may not cost a failed Get, more loads at once than MaxLoads, or a value from
// before an Invalidate that was acknowledged after the loss.
func TestAFailoverCostsNothingButLoads(t *testing.T) {
	t.Parallel()
	for name, deploy := range expect.Some(1, map[string]func(*testing.T) deployment{"sentinel": underSentinel, "cluster": asCluster}) {
		for way, survive := range expect.Some(1, map[string]func(*failover){"killed": surviveKill, "frozen until it is a primary no more": surviveFreeze}) {
			expect.Beside(t, name+", primary "+way, func(t *testing.T) {
				f := startFailover(t, deploy(t))
				survive(f)
				f.awaitHits()
				f.awaitWritten()
				f.stop()
			})
		}
	}
}

func surviveKill(f *failover) {
	f.lose((*redistest.Server).Kill)
	f.awaitPromotion()
}

func surviveFreeze(f *failover) {
	f.lose((*redistest.Server).Pause)
	f.awaitPromotion()
	f.awaitHits()
	f.Logf("%d connections to the old primary were dialled too late to be closed", f.fence.close(f.primary.Addr()))
	f.primary.Resume() // with every command that it was sent
	redistest.Await(f.T, "the old primary follows the new one", func() bool { return role(f.primary) == "slave" })
	f.fence.lift()
}

// deployment is a primary that somebody watches, and the replica that will take its place.
type deployment struct {
	primary, replica *redistest.Server
	client           func(testing.TB) client
	forbear          func() // there is no other failover from then on, which would lose what was acknowledged
	fence            *fence
}

func underSentinel(t *testing.T) deployment {
	s, f := redistest.StartSentinel(t), newFence()
	fenced := func(tb testing.TB) client {
		return s.FailoverClient(tb, func(o *redis.FailoverOptions) { o.Dialer = f.dial })
	}
	return deployment{s.Primary(), s.Replica(), fenced, s.Forbear, f}
}

func asCluster(t *testing.T) deployment {
	c := redistest.StartCluster(t, 1)
	return deployment{c.Node(0), c.Node(3), func(tb testing.TB) client { return c.Client(tb) }, func() {}, newFence()}
}

func role(s *redistest.Server) string { return s.Info("replication")["role"] }

// failover is a fleet that reads and writes all the time.
type failover struct {
	*testing.T
	deployment
	fleet *fleet
	end   context.CancelFunc
	tasks sync.WaitGroup

	losing sync.RWMutex // writers hold it for an Invalidate, so that none is under way when the primary is lost
	keys   [24]struct { // on all nodes of a cluster
		version atomic.Int64 // in the database
		least   atomic.Int64 // the newest whose Invalidate returned nil, since the primary was lost
	}
	running, most      [2]atomic.Int64 // loads of each instance at once
	gets, acknowledged atomic.Int64
}

const failoverMaxLoads = 3

func startFailover(t *testing.T, d deployment) *failover {
	f := &failover{T: t, deployment: d}
	f.fleet = newFleetOn(t, d.client(t), Config{
		TTL: 200 * time.Millisecond, StaleFor: time.Second, LeaseTTL: 500 * time.Millisecond, // failovers last longer
		RedisTimeout: 200 * time.Millisecond, MaxLoads: failoverMaxLoads, // as above
	}, d.client(t), d.client(t))
	f.fleet.events.quiet = true
	var ctx context.Context
	ctx, f.end = context.WithCancel(context.Background())
	t.Cleanup(f.wait)
	for k := range f.keys {
		f.tasks.Go(func() { f.write(ctx, k) }) // one for each key, so that versions are acknowledged in their order
	}
	for range 8 {
		f.tasks.Go(func() { f.read(ctx) })
	}
	f.awaitHits()
	return f
}

func (f *failover) wait() {
	f.end()
	f.tasks.Wait()
}

// stop ends the reading and writing, and checks what happened.
func (f *failover) stop() {
	f.Helper()
	f.wait()
	f.Logf("%d gets, %d invalidations since the failover; %v", f.gets.Load(), f.acknowledged.Load(), f.fleet.events.outcomes)
	if f.acknowledged.Load() == 0 || f.fleet.events.count(Bypassed) == 0 {
		f.Error("nothing happened")
	}
	for i := range f.most {
		if n := f.most[i].Load(); n > failoverMaxLoads {
			f.Errorf("guard %d had %d loads at once", i, n)
		}
	}
}

func (f *failover) write(ctx context.Context, k int) {
	for ctx.Err() == nil {
		version := f.keys[k].version.Add(1)
		f.invalidate(k, version)
		pause(200 * time.Millisecond)
	}
}

func (f *failover) invalidate(k int, version int64) {
	f.losing.RLock()
	defer f.losing.RUnlock()
	if f.fleet.guards[rand.N(len(f.fleet.guards))].Invalidate(context.Background(), name(k)) == nil {
		f.keys[k].least.Store(version)
		f.acknowledged.Add(1)
	}
}

func name(k int) string { return fmt.Sprint("k", k) }

func (f *failover) read(ctx context.Context) {
	for ctx.Err() == nil {
		k, i := rand.N(len(f.keys)), rand.N(len(f.fleet.guards))
		least := f.keys[k].least.Load()
		got, err := Get(context.Background(), f.fleet.guards[i], name(k), f.load(i, func() int64 {
			return f.keys[k].version.Load()
		}))
		f.gets.Add(1)
		if err != nil || got < least {
			f.Errorf("k%d: got version %d, %v; want at least %d", k, got, err, least)
		}
		breathe(15 * time.Millisecond)
	}
}

// load makes a loader for an instance, which counts how many run.
func (f *failover) load(i int, read func() int64) func(context.Context) (int64, error) {
	return func(context.Context) (int64, error) {
		now := f.running[i].Add(1)
		defer f.running[i].Add(-1)
		for seen := f.most[i].Load(); now > seen && !f.most[i].CompareAndSwap(seen, now); seen = f.most[i].Load() {
		}
		version := read()
		pause(20 * time.Millisecond)
		return version, nil
	}
}

// lose loses the primary. Redis acknowledges writes before it replicates them, so some may be lost with it.
func (f *failover) lose(how func(*redistest.Server)) {
	f.losing.Lock()
	defer f.losing.Unlock()
	for k := range f.keys {
		f.keys[k].least.Store(0)
	}
	f.acknowledged.Store(0)
	how(f.primary)
}

func (f *failover) awaitPromotion() {
	f.Helper()
	redistest.Await(f.T, "the replica is the primary", func() bool { return role(f.replica) == "master" })
	f.forbear()
}

// awaitWritten waits until every key was invalidated since the primary was lost, and read many times after that.
func (f *failover) awaitWritten() {
	f.Helper()
	for k := range f.keys {
		redistest.Await(f.T, "an acknowledgement", func() bool { return f.keys[k].least.Load() > 0 })
	}
	read := f.gets.Load()
	redistest.Await(f.T, "Gets", func() bool { return f.gets.Load() > read+int64(5*len(f.keys)) })
}

// awaitHits waits until every instance finds keys of all nodes in the cache.
func (f *failover) awaitHits() {
	f.Helper()
	for i, g := range f.fleet.guards {
		for k := range f.keys {
			redistest.Await(f.T, fmt.Sprintf("a hit at guard %d", i), func() bool {
				loaded := false
				load := f.load(i, func() int64 { loaded = true; return 1 })
				mustGet(f.T, g, "calm "+name(k), func(ctx context.Context) (int64, error) {
					SetTTL(ctx, time.Minute) // nobody writes these
					return load(ctx)
				})
				return !loaded
			})
		}
	}
}

// fence stands between clients and a primary that is none any more. A client closes its connections when it hears of the new one. But one that it
// is about to dial just then, at the address that it asked for before, it keeps.
type fence struct {
	mu     sync.Mutex
	closed string // its address; "": none
	open   map[net.Conn]string
}

func newFence() *fence { return &fence{open: make(map[net.Conn]string)} }

// dial is a Dialer.
func (f *fence) dial(ctx context.Context, network, addr string) (net.Conn, error) {
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
