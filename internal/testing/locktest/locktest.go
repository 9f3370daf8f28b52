// Package locktest is one suite of tests for every kind of lock: it holds what callers rely on against processes that are
// killed and frozen, callers that give up, and servers that are restarted, killed and frozen. It knows the locks by a few
// methods, and their servers by a few functions.
//
//	var kind = locktest.Kind{…}
//
//	func TestLocksKeepTheirPromises(t *testing.T) { locktest.Run(t, kind) }
//
//	func TestAProcessOfTheSuite(t *testing.T) { locktest.Child(t, kind) } // its children run this one
package locktest

import (
	"context"
	"testing"
	"time"
)

// Lease is a lock that is held.
type Lease interface {
	Context() context.Context
	Fence() int64
	Token() string
	TrustedUntil() time.Time
	Unlock(ctx context.Context) error
}

// Locker is what hands out locks.
type Locker[L Lease] interface {
	Lock(ctx context.Context, name string) (L, error)
	TryLock(ctx context.Context, name string) (L, error)
	Do(ctx context.Context, name string, f func(context.Context, L) error) error
	Close() error
}

// Locks is a Locker of leases of any type.
type Locks interface{ Locker[Lease] }

// Of makes a Locker one of the suite's.
func Of[L Lease](k Locker[L]) Locks { return anyLocks[L]{k} }

type anyLocks[L Lease] struct{ of Locker[L] }

func (a anyLocks[L]) Lock(ctx context.Context, name string) (Lease, error) {
	return lease(a.of.Lock(ctx, name))
}

func (a anyLocks[L]) TryLock(ctx context.Context, name string) (Lease, error) {
	return lease(a.of.TryLock(ctx, name))
}

func (a anyLocks[L]) Do(ctx context.Context, name string, f func(context.Context, Lease) error) error {
	return a.of.Do(ctx, name, func(ctx context.Context, l L) error { return f(ctx, l) })
}

func (a anyLocks[L]) Close() error { return a.of.Close() }

func lease[L Lease](l L, err error) (Lease, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Config is what the suite sets of a Locker's.
type Config struct {
	Prefix   string
	TTL      time.Duration
	Timeout  time.Duration                                    // of requests: long, as the machine may stand still
	OnLock   func(name string, took time.Duration, err error) // hooks; may be nil
	OnUnlock func(name string, took time.Duration, err error)
}

// Kind is a kind of lock.
type Kind struct {
	// Start starts servers of the test's own.
	Start func(tb testing.TB) Server

	// Shared returns servers that other tests use, too, for those of the suite that leave them as they are. nil: they have some of Start.
	Shared func(tb testing.TB) Server

	// Light says that a few servers more cost little.
	Light bool

	// Volatile says that nothing outlives a restart of the server.
	Volatile bool

	// Open makes a Locker with a client of its own, and closes both when tb ends. Children call it too.
	Open func(tb testing.TB, addr string, cfg Config) Locks

	// Over is the address of a server whose members are reached over relays, each at a host:port.
	Over func(relays []string) (addr string)

	// Asking is how many hold the lock of the name or wait for it, by what is in the store. nil: the store has no queue.
	Asking func(tb testing.TB, addr, prefix, name string) int

	// Cut has the server cut the connection of the holder. nil: locks do not depend on a connection.
	Cut func(tb testing.TB, addr, prefix, name string)

	// OneConnection says that a Locker has one connection, to one of the members. If the network is cut there, its leases can be lost
	// before it has found another.
	OneConnection bool

	// Clock is the wall clock of the server.
	Clock func(tb testing.TB, addr string) time.Time

	// WallClock says that this clock measures leases.
	WallClock bool

	// Clocked says that fences of names that nothing is known of begin with this clock.
	Clocked bool

	// LeapsEndSessions says that the server may take a leap forward of its clock for time that a session idled, and end it. Then the
	// lease is lost, or the wait fails.
	LeapsEndSessions bool

	// TTL is the shortest that a machine which stands still now and then allows.
	TTL time.Duration

	// The package's errors.
	NotAcquired, LeaseLost, Closed error
}

// common returns servers for tests that leave them as they are.
func (k Kind) common(tb testing.TB) Server {
	if k.Shared != nil {
		return k.Shared(tb)
	}
	return k.Start(tb)
}

// Server is a server, or several that are one to their clients.
type Server struct {
	Addr    string
	Members []Member
	Doors   []string                // where each of the Members listens: host:port, or the path of a socket
	Leader  func(tb testing.TB) int // which of the Members leads; nil: there is only one, or no leader

	// LateWhenKilled and LateWhenFrozen say that the server measures by its wall clock how long it has not heard of a holder that was
	// killed, or frozen. Its lease ends later by as much as the clock was set back.
	LateWhenKilled, LateWhenFrozen bool

	// StaleLeaders says that a leader that was frozen can end leases that its successor has renewed. Then two may believe that they
	// hold a lock, and only its fences tell them apart.
	StaleLeaders bool
}

// Member is a process of a server.
type Member interface {
	Kill()  // SIGKILL, or a crash as the server does it
	Start() // again, with its data; it returns when the member answers
	Lose()  // crashes, loses its data, and is put in place again as its operator would; it returns when the member answers
	Pause() // SIGSTOP, to all of it
	Resume()

	SetClock(ahead time.Duration) error // its wall clock, to so much after the machine's; errors.ErrUnsupported: not here
}

// patience is how long a test waits before it fails.
const patience = 3 * time.Minute

// patient is a context that only a test that fails waits for.
func patient(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// await returns when cond is true.
func await(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	poll(tb, 5*time.Millisecond, what, cond)
}

// awaitSoon is for what comes at once.
func awaitSoon(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	poll(tb, time.Millisecond, what, cond)
}

// poll asks often at first, and seldom for what takes seconds, as dozens of tests wait side by side.
func poll(tb testing.TB, first time.Duration, what string, cond func() bool) {
	tb.Helper()
	for began := time.Now(); !cond(); {
		waited := time.Since(began)
		if waited > patience {
			tb.Fatalf("gave up waiting: %s", what)
		}
		<-time.After(min(50*time.Millisecond, max(first, waited/10)))
	}
}
