package histories

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	mrand "math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

const (
	processes = 8
	turns     = 40 // of each process
	names     = 3
)

// lockAtRandom is what a child does: it takes locks and gives them up, and says so before and after, and until when it was
// sure to hold them. The clock is the machine's, so that the parent can compare. With TTL=ignored it is as sure when its lease is over.
func lockAtRandom(t *testing.T) {
	locks, _ := openLocks(t)
	kind, ignored := os.Getenv("KIND"), os.Getenv("TTL") == "ignored"
	trusts := func(l lease) bool { return ignored || time.Now().Before(l.TrustedUntil()) } // the context ends a moment after a pause
	now := func() int64 { return time.Now().UnixNano() }
	for turn := range turns {
		name, read := fmt.Sprint("n", mrand.IntN(names)), kind == "semaphore" || mrand.IntN(10) < 7
		called := now()
		l, err := locks.lock(context.Background(), name, read)
		if errors.Is(err, mutex.ErrLeaseLost) || errors.Is(err, rwlock.ErrLeaseLost) || errors.Is(err, io.EOF) {
			continue // the machine stood still: the lease was over before the process knew of it; or replies were lost, again and again
		}
		if err != nil {
			t.Fatal(err)
		}
		sure := now()
		if !trusts(l) {
			sure = called // paused before it knew
		}
		fmt.Println("held", turn, name, read, called, sure, l.Fence())
		for range mrand.IntN(10) {
			select {
			case <-l.Context().Done():
			case <-time.After(time.Millisecond):
			}
			if at := now(); trusts(l) {
				sure = at
			}
		}
		begun := now()
		if l.Unlock(context.Background()) == nil {
			fmt.Println("gave", turn, begun, now())
		} else {
			fmt.Println("lost", turn, sure, int64(math.MaxInt64))
		}
	}
	fmt.Println("done")
}

// recorder collects what the processes say.
type recorder struct {
	kind    string
	mu      sync.Mutex
	history []porcupine.Operation
	held    chan int // a process has just taken a lock
}

// listen takes down what a process says until it ends. The lock of one that dies holding it is given up at some time after
// it was taken.
func (r *recorder) listen(ctx context.Context, t *testing.T, id int, p *redistest.Process) {
	var open *porcupine.Operation
	for {
		line, err := p.ReadLine(ctx)
		var kind, name string
		var turn int
		var read bool
		var call, ret, fence int64
		switch {
		case errors.Is(err, io.EOF), line == "done":
			if open != nil {
				r.add(*open)
			}
			return
		case err != nil:
			t.Error(err)
			return
		}
		if n, _ := fmt.Sscan(line, &kind, &turn, &name, &read, &call, &ret, &fence); n == 7 && kind == "held" {
			did := action{name: name, read: read, permits: map[bool]int{true: permits}[r.kind == "semaphore"]}
			r.add(porcupine.Operation{ClientId: id, Input: did, Call: call, Output: fence, Return: ret})
			did.giveUp = true
			open = &porcupine.Operation{ClientId: id, Input: did, Call: ret, Output: int64(0), Return: math.MaxInt64}
			select {
			case r.held <- id:
			default:
			}
			continue
		}
		if n, _ := fmt.Sscan(line, &kind, &turn, &call, &ret); n != 4 || open == nil {
			t.Errorf("process %d says %q", id, line)
			return
		}
		open.Call, open.Return = call, ret
		r.add(*open)
		open = nil
	}
}

func (r *recorder) add(op porcupine.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, op)
}

// run lets 8 processes lock, each behind a proxy, and judges what they did. Two are killed, others paused for longer than their leases last, when
// they have just taken a lock, and replies are lost.
func run(t *testing.T, kind string, more ...string) porcupine.CheckResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	prefix := "history-" + rand.Text()
	r := &recorder{kind: kind, held: make(chan int)}
	var children []*redistest.Process
	var proxies []*redistest.Proxy
	var listening sync.WaitGroup
	for i := range processes {
		proxy := redistest.StartProxy(t, shared.Addr())
		p := redistest.Child(t, "TestChildThatLocksAtRandom", append(environment(kind, prefix, more...), "ADDR="+proxy.Addr())...)
		children, proxies = append(children, p), append(proxies, proxy)
		listening.Go(func() { r.listen(ctx, t, i, p) }) // owner: the test; stop: the child's end; joined below
	}
	ended := make(chan struct{})
	go func() { // owner: the test; stop: the children's end; joined by receiving
		listening.Wait()
		close(ended)
	}()
	lost := torment(children, proxies, r.held, ended)
	<-ended
	t.Logf("%d actions, %d replies lost", len(r.history), lost)
	return porcupine.CheckOperationsTimeout(perfect, r.history, time.Minute)
}

func TestHistoriesArePossibleWithALockThatNeverFails(t *testing.T) {
	for _, kind := range all {
		t.Run(kind, func(t *testing.T) {
			if result := run(t, kind); result != porcupine.Ok {
				t.Error(result)
			}
		})
	}
}

// A holder that was paused goes on although its lease is over, and others have the lock.
func TestHoldersThatIgnoreTheirTTLAreFound(t *testing.T) {
	for _, kind := range all {
		t.Run(kind, func(t *testing.T) {
			for range 10 { // mistakes show by chance
				if run(t, kind, "TTL=ignored") == porcupine.Illegal {
					return
				}
			}
			t.Error("none is: the other test proves nothing")
		})
	}
}

func TestChildThatLocksAtRandom(t *testing.T) {
	if redistest.IsChild(t) {
		lockAtRandom(t)
	}
}

// torment pauses processes that have just taken a lock, kills two, and has replies to others be lost, until all have ended. It returns how many were lost.
func torment(children []*redistest.Process, proxies []*redistest.Proxy, held <-chan int, ended <-chan struct{}) (lost int) {
	for round := 1; ; round++ {
		rule := proxies[mrand.IntN(len(proxies))].On(redistest.Command("evalsha"), redistest.DropReply).Times(1 + mrand.IntN(2))
		victim := -1
		for range 12 {
			select {
			case <-ended:
				return lost + rule.Count()
			case victim = <-held:
			}
		}
		lost += rule.Count()
		rule.Remove()
		if round == 3 || round == 5 {
			children[victim].Kill()
			continue
		}
		children[victim].Pause()
		select {
		case <-time.After(2 * ttl):
		case <-ended:
		}
		children[victim].Resume()
	}
}

// TestImpossibleHistoriesAreFound makes sure that the model can say no.
func TestImpossibleHistoriesAreFound(t *testing.T) {
	op := func(read, giveUp bool, fence, call, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: action{"n", read, giveUp, 0}, Call: call, Output: fence, Return: ret}
	}
	permit := func(call, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: action{"n", true, false, 2}, Call: call, Output: int64(0), Return: ret}
	}
	for name, test := range map[string]struct {
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"two writers":                      {[]porcupine.Operation{op(false, false, 1, 1, 2), op(false, false, 2, 3, 4), op(false, true, 0, 5, 6)}, porcupine.Illegal},
		"a writer beside a reader":         {[]porcupine.Operation{op(true, false, 0, 1, 2), op(false, false, 2, 3, 4), op(true, true, 0, 5, 6)}, porcupine.Illegal},
		"a fence that does not grow":       {[]porcupine.Operation{op(false, false, 2, 1, 2), op(false, true, 0, 3, 4), op(false, false, 2, 5, 6)}, porcupine.Illegal},
		"a lease that was lost in between": {[]porcupine.Operation{op(false, false, 1, 1, 2), op(false, true, 0, 2, math.MaxInt64), op(false, false, 2, 3, 4)}, porcupine.Ok},
		"two permits":                      {[]porcupine.Operation{permit(1, 2), permit(3, 4)}, porcupine.Ok},
		"one permit too many":              {[]porcupine.Operation{permit(1, 2), permit(3, 4), permit(5, 6)}, porcupine.Illegal},
		"two readers":                      {[]porcupine.Operation{op(true, false, 0, 1, 2), op(true, false, 0, 3, 4)}, porcupine.Ok},
	} {
		if got := porcupine.CheckOperationsTimeout(perfect, test.history, time.Minute); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
