package semaphore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// ofParent is the Locker of a child of a test, with the parent's semaphore.
func ofParent(t *testing.T) *Locker {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	t.Cleanup(func() { _ = rdb.Close() })
	ttl, _ := time.ParseDuration(os.Getenv("TTL"))
	k, err := New(rdb, Config{Prefix: os.Getenv("PREFIX"), TTL: ttl, RedisTimeout: redisTimeout, Permits: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return k
}

// child starts a process that runs the test of the same name.
func (f *fleet) child(ttl time.Duration) *redistest.Process {
	f.t.Helper()
	return redistest.Child(f.t, f.t.Name(), "ADDR="+shared.Addr(), "PREFIX="+f.prefix, "TTL="+ttl.String())
}

// byLine obeys the parent. On "Lock" it says "asks", takes a permit and says "holds". On "Unlock" it gives it up and says whether it was
// lost.
func byLine(t *testing.T) {
	t.Helper()
	k := ofParent(t)
	var l *Lease
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "Lock":
			fmt.Println("asks")
			l = take(t, k)
			fmt.Println("holds")
		case "Unlock":
			fmt.Println("lost", errors.Is(l.Unlock(context.Background()), ErrLeaseLost))
		}
	}
}

func TestAPermitOfAKilledHolderIsFreeWhenItsLeaseEnds(t *testing.T) {
	if redistest.IsChild(t) {
		byLine(t)
		return
	}
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{TTL: time.Minute}).listening()
	held := take(t, f.lockers[0])
	child := f.child(brisk)
	child.WriteLine("Lock")
	child.Expect("asks")
	child.Expect("holds")
	next := wait(t, f.lockers[0])
	f.awaitWaiters(1)
	child.Kill()
	unlock(t, next.Got(), held)
}

func TestAKilledWaiterIsPassedOver(t *testing.T) {
	if redistest.IsChild(t) {
		byLine(t)
		return
	}
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{}).listening()
	held := []*Lease{take(t, f.lockers[0]), take(t, f.lockers[0])}
	child := f.child(brisk)
	child.WriteLine("Lock")
	child.Expect("asks")
	f.awaitWaiters(1)
	next := wait(t, f.lockers[0])
	f.awaitWaiters(2)
	child.Kill()
	unlock(t, held[0]) // the dead one is granted the permit, if it is not found dead before
	unlock(t, next.Got(), held[1])
}

func TestAPausedHolderFindsItsLeaseLost(t *testing.T) {
	if redistest.IsChild(t) {
		byLine(t)
		return
	}
	t.Parallel()
	f := newFleet(t, standalone, 1, Config{}).listening()
	held := take(t, f.lockers[0])
	child := f.child(brisk)
	child.WriteLine("Lock")
	child.Expect("asks")
	child.Expect("holds")
	next := wait(t, f.lockers[0])
	f.awaitWaiters(1)
	child.Pause()
	l := next.Got()
	child.Resume()
	child.WriteLine("Unlock")
	child.Expect("lost true")
	expect.Equal(t, "holders", len(f.info().Holders), 2)
	unlock(t, l, held)
}

// span is a time during which a process held a permit: from when it had it until it last saw that it did.
type span struct{ from, to int64 }

// holdAgainAndAgain takes permits and says when it held them. The clock is the machine's, which all processes share.
func holdAgainAndAgain(t *testing.T) {
	t.Helper()
	k := ofParent(t)
	for {
		l, err := k.Lock(t.Context(), "a")
		if err != nil { // the process was paused for too long
			continue
		}
		from := time.Now().UnixNano()
		for range 3 {
			if to := time.Now().UnixNano(); l.Context().Err() == nil { // it was held at that time, too
				fmt.Println("held", from, to)
			}
			_ = l.Extend(t.Context())      // a little work, some of it at the same time as others'
			<-time.After(time.Millisecond) // at full speed, four processes would take all there is of the machine
		}
		_ = l.Unlock(t.Context()) // it may have been lost
	}
}

// witness gathers what processes say.
type witness struct {
	mu       sync.Mutex
	holdings []span
	reading  sync.WaitGroup
}

func (w *witness) listen(p *redistest.Process) {
	w.reading.Go(func() { // owner: the test; stop: the end of the process; joined before the verdict
		for {
			line, err := p.ReadLine(context.Background())
			if err != nil {
				return
			}
			var h span
			if _, err := fmt.Sscanf(line, "held %d %d", &h.from, &h.to); err == nil {
				w.mu.Lock()
				w.holdings = append(w.holdings, h)
				w.mu.Unlock()
			}
		}
	})
}

// awaitMore waits until that many more holdings are known.
func (w *witness) awaitMore(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.holdings)
	}
	before := count()
	redistest.Await(t, "permits are used", func() bool { return count() >= before+n })
}

// most is the largest number that held at once.
func (w *witness) most() (most int) {
	type event struct {
		at   int64
		adds int
	}
	longest := make(map[int64]int64) // a holding was reported more than once
	for _, h := range w.holdings {
		longest[h.from] = max(longest[h.from], h.to)
	}
	var events []event
	for from, to := range longest {
		events = append(events, event{from, 1}, event{to, -1})
	}
	slices.SortFunc(events, func(a, b event) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.adds - b.adds
	})
	holders := 0
	for _, e := range events {
		holders += e.adds
		most = max(most, holders)
	}
	return most
}

func TestNoMoreThanThePermitsAreHeldWhileProcessesAreKilledAndPaused(t *testing.T) {
	if redistest.IsChild(t) {
		holdAgainAndAgain(t)
		return
	}
	t.Parallel()
	const ttl = 300 * time.Millisecond
	f := newFleet(t, standalone, 1, Config{TTL: ttl})
	var w witness
	var children []*redistest.Process
	start := func() *redistest.Process {
		p := f.child(ttl)
		w.listen(p)
		return p
	}
	for range 4 {
		children = append(children, start())
	}
	for i := range expect.Samples(4, 6) {
		w.awaitMore(t, 30)
		children[i%4].Kill()
		paused := children[(i+1)%4]
		paused.Pause()
		w.awaitMore(t, 30) // by the other two, when the leases of these are over
		paused.Resume()
		children[i%4] = start()
	}
	w.awaitMore(t, 30)
	for _, p := range children {
		p.Kill()
	}
	w.reading.Wait()
	expect.Equal(t, "held at once", w.most(), 2)
}
