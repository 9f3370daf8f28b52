package locktest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// sharing are tests that leave their server as it is.
var sharing = map[string]func(*bench){
	"a lock has one holder": oneHolder,
	"a name that a lock cannot have is refused and costs nobody a lock": names,
	"Do unlocks and hooks hear of it":                                   doUnlocks,
	"a wait that ends leaves nothing behind":                            givingUp,
	"a wait that ends as the lock is granted leaves nothing behind":     givingUpLate,
	"a call says that others have the lock when it was told so":         toldTaken,
	"Close ends leases and waits and frees the locks":                   closing,
	"waiters get the lock one after the other in their order":           inOrder,
}

// failing are, too, though processes die and connections break.
var failing = map[string]func(*bench){
	"the lock of a killed holder passes on with a larger fence":                          killedHolder,
	"the lock of a holder that runs out of memory passes on with a larger fence":         exhaustedHolder,
	"a killed waiter holds nobody up":                                                    killedWaiter,
	"a frozen holder has lost its lease when it goes on":                                 frozenHolder,
	"a lock whose connection was cut is free when its holder does not trust it any more": cutConnection,
	"no two hold the lock while processes are killed and frozen":                         storm,
	"a holder that the network cuts off has lost its lease before the next one has it":   cutOff,
	"an unlock that the network holds up does not free the lock of the next one":         heldUpUnlock,
	"a waiter that the network cuts off does not take the lock of the next one":          cutOffWaiter,
	"a call does not say that others have the lock when nobody said so":                  untold,
	"a lease lives on when its holder is cut off from one member":                        cutOffFromOne,
	"a lease lives on when its holder's connections break":                               brokenConnections,
}

// disturbing are tests that need a server each.
var disturbing = map[string]func(*bench){
	"a lease ends in time when the server is frozen":              frozenServer,
	"the error of a request without an answer says what and when": silentServer,
	restarts: restartedServer,
	"one server forgets the lock when its disk is lost": lostDisk,
}

// restarts is for servers that keep locks when they restart.
const restarts = "fences grow and no two hold the lock when the server restarts"

// Run runs the suite in parts. If servers are light, tests run at once: those that leave their server as it is on the same one, and some of
// the others on more.
func Run(t *testing.T, kind Kind) {
	groups, clocks := 1, 1
	if kind.Light {
		groups, clocks = 6, 3
	}
	each := maps.Clone(disturbing)
	if kind.Volatile {
		delete(each, restarts)
	}
	run(t, "on one server", kind, sharing, groups, true)
	run(t, "on one server, while its clients fail", kind, failing, groups, true)
	run(t, "while its clock is set", kind, clockTests, clocks, false)
	run(t, "on a server each", kind, each, len(each), false)
}

// run runs tests in groups, which have the same server or one each.
func run(t *testing.T, name string, kind Kind, tests map[string]func(*bench), groups int, together bool) {
	names := slices.Collect(maps.Keys(tests))
	group := func(t *testing.T, first int, server Server) {
		for i := first; i < len(names); i += groups {
			t.Run(names[i], func(t *testing.T) { tests[names[i]](newBench(t, kind, server)) })
		}
	}
	t.Run(name, func(t *testing.T) {
		if kind.Light {
			t.Parallel()
		}
		var server Server
		if together {
			server = kind.common(t)
		}
		for first := range groups {
			t.Run("group "+strconv.Itoa(first), func(t *testing.T) {
				if kind.Light {
					t.Parallel()
				}
				on := server
				if !together {
					on = kind.Start(t)
				}
				group(t, first, on)
			})
		}
	})
}

// RunMembers runs the tests on what happens when one of several members fails.
func RunMembers(t *testing.T, kind Kind) {
	for name, test := range map[string]func(*bench){
		"no two hold the lock while the leader is killed":                                  killedLeader,
		"no two hold the lock while the leader is frozen":                                  frozenLeader,
		"a lease lives on when a leader comes back that was frozen":                        returnedLeader,
		"a lease ends in time when the majority is frozen, and nobody gets the lock":       frozenServer,
		"a lease ends in time when the followers are frozen, and nobody gets the lock":     frozenFollowers,
		"no two hold the lock when a member loses its disk":                                lostMember,
		"a holder that the network cuts off has lost its lease before the next one has it": cutOff,
		"a lease lives on when its holder is cut off from the leader":                      cutOffFromOne,
	} {
		t.Run(name, func(t *testing.T) { test(newBench(t, kind, kind.Start(t))) })
	}
}

func oneHolder(b *bench) {
	k, other := b.open(), b.open()
	l := b.lock(k)
	for _, locks := range []Locks{k, other} {
		_, err := locks.TryLock(patient(b), "x")
		expect.ErrorIs(b, err, b.kind.NotAcquired)
	}
	apart, err := other.TryLock(patient(b), "X") // names are told apart by every byte
	if err != nil {
		b.Fatal(err)
	}
	b.unlock(apart)
	expect.Equal(b, "the context lives", l.Context().Err(), nil)
	expect.Equal(b, "there is a token", l.Token() != "", true)
	b.unlock(l)
	expect.ErrorIs(b, l.Context().Err(), context.Canceled)
	expect.ErrorIs(b, l.Unlock(context.Background()), nil)

	next, err := other.TryLock(patient(b), "x")
	if err != nil {
		b.Fatal(err)
	}
	expect.Equal(b, "the fence grows", next.Fence() > l.Fence(), true)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	expect.ErrorIs(b, next.Unlock(ended), nil)
	_, err = k.Lock(ended, "x")
	expect.ErrorIs(b, err, context.Canceled)
	expect.Equal(b, "others have it, as nobody said", errors.Is(err, b.kind.NotAcquired), false)
}

type key struct{}

func doUnlocks(b *bench) {
	cfg := b.config()
	locked, unlocked := 0, 0
	cfg.OnLock = func(name string, _ time.Duration, err error) {
		if name == "x" && err == nil {
			locked++
		}
	}
	cfg.OnUnlock = func(name string, _ time.Duration, err error) {
		if name == "x" && err == nil {
			unlocked++
		}
	}
	k := b.kind.Open(b, b.server.Addr, cfg)
	wrong := errors.New("wrong")
	for _, want := range []error{nil, wrong} {
		err := k.Do(context.WithValue(patient(b), key{}, "value"), "x", func(ctx context.Context, l Lease) error {
			expect.Equal(b, "the value of the context", ctx.Value(key{}), any("value"))
			expect.Equal(b, "the value of the lease's", l.Context().Value(key{}), any("value"))
			return want
		})
		expect.ErrorIs(b, err, want)
	}
	expect.Equal(b, "locked", locked, 2)
	expect.Equal(b, "unlocked", unlocked, 2)
}

func closing(b *bench) {
	k, other := b.open(), b.open()
	l := b.lock(k)
	waiting := b.ask(context.Background(), k)
	if err := k.Close(); err != nil {
		b.Error(err)
	}
	expect.ErrorIs(b, (<-waiting).err, b.kind.Closed)
	expect.ErrorIs(b, context.Cause(l.Context()), b.kind.Closed)
	expect.ErrorIs(b, l.Unlock(context.Background()), b.kind.Closed)
	_, err := k.Lock(patient(b), "x")
	expect.ErrorIs(b, err, b.kind.Closed)
	expect.ErrorIs(b, k.Close(), nil)
	next, err := other.TryLock(patient(b), "x")
	if err != nil {
		b.Fatal(err)
	}
	b.unlock(next)
}

// givingUp has many give up at once, some of them in the store's queue.
func givingUp(b *bench) {
	k, others := b.open(), []Locks{b.open(), b.open(), b.open()}
	l := b.lock(k)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	var waiting []<-chan outcome
	for i := range 30 {
		waiting = append(waiting, b.ask(ctx, others[i%len(others)]))
	}
	if b.kind.Asking != nil {
		await(b, "each process waits", func() bool {
			return b.kind.Asking(b, b.server.Addr, b.prefix, "x") > len(others)
		})
	}
	cancel(why)
	for _, w := range waiting {
		expect.ErrorIs(b, (<-w).err, context.Canceled, why)
	}
	b.awaitAsking(1)
	b.unlock(l)
	b.awaitAsking(0)
	b.unlock(b.lock(others[0]))
}

// givingUpLate has a call give up at the moment when the lock becomes free.
func givingUpLate(b *bench) {
	k, other := b.open(), b.open()
	for range 30 {
		l := b.lock(k)
		ctx, cancel := context.WithCancel(context.Background())
		waiting := b.ask(ctx, other)
		b.awaitAsking(2)
		unlocked := make(chan error)
		go func() { unlocked <- l.Unlock(context.Background()) }() // owner: the test; ends with Unlock; joined by receiving
		cancel()
		expect.ErrorIs(b, <-unlocked, nil)
		if o := <-waiting; o.err == nil {
			b.unlock(o.lease)
		} else {
			expect.ErrorIs(b, o.err, context.Canceled)
		}
		b.awaitAsking(0)
	}
}

// inOrder asks from one process after the other.
func inOrder(b *bench) {
	if b.kind.Asking == nil {
		b.Skip("there is no queue")
	}
	const n = 4
	held := b.lock(b.open())
	var waiting [n]<-chan outcome
	for i := range waiting {
		waiting[i] = b.ask(patient(b), b.open())
		b.awaitAsking(i + 2)
	}
	for i, w := range waiting {
		fence := held.Fence()
		b.unlock(held)
		held = b.granted(w)
		expect.Equal(b, "the fence grows", held.Fence() > fence, true)
		for _, later := range waiting[i+1:] {
			expect.Equal(b, "granted before its time", len(later), 0)
		}
	}
	b.unlock(held)
}
