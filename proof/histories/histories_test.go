package histories

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	mrand "math/rand/v2"
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
// sure to hold them. The clock is the machine's, so that the parent can compare.
func lockAtRandom(t *testing.T) {
	locks, _ := openLocks(t)
	now := func() int64 { return time.Now().UnixNano() }
	for turn := range turns {
		name, read := fmt.Sprint("n", mrand.IntN(names)), mrand.IntN(10) < 7
		called := now()
		l, err := locks.lock(context.Background(), name, read)
		if errors.Is(err, mutex.ErrLeaseLost) || errors.Is(err, rwlock.ErrLeaseLost) {
			continue // the machine stood still: the lease was over before the process knew of it
		}
		if err != nil {
			t.Fatal(err)
		}
		sure := now()
		if !time.Now().Before(l.TrustedUntil()) {
			sure = called // paused before it knew
		}
		fmt.Println("held", turn, name, read, called, sure, l.Fence())
		for range mrand.IntN(10) {
			select {
			case <-l.Context().Done():
			case <-time.After(time.Millisecond):
			}
			if at := now(); time.Now().Before(l.TrustedUntil()) { // the context ends a moment after a pause
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
			did := action{name: name, read: read}
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

// TestHistoriesArePossibleWithALockThatNeverFails runs 8 processes. Two are killed, others paused for longer
// than their leases last, when they have just taken a lock.
func TestHistoriesArePossibleWithALockThatNeverFails(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			prefix := "history-" + rand.Text()
			r := &recorder{held: make(chan int)}
			var children []*redistest.Process
			var listening sync.WaitGroup
			for i := range processes {
				p := redistest.Child(t, "TestChildThatLocksAtRandom", environment(kind, prefix)...)
				children = append(children, p)
				listening.Go(func() { r.listen(ctx, t, i, p) }) // owner: the test; stop: the child's end; joined below
			}
			ended := make(chan struct{})
			go func() { // owner: the test; stop: the children's end; joined by receiving
				listening.Wait()
				close(ended)
			}()
			torment(children, r.held, ended)
			<-ended
			result := porcupine.CheckOperationsTimeout(perfect, r.history, time.Minute)
			if result != porcupine.Ok {
				t.Errorf("%d actions: %s", len(r.history), result)
			}
			t.Logf("%d actions", len(r.history))
		})
	}
}

func TestChildThatLocksAtRandom(t *testing.T) {
	if redistest.IsChild(t) {
		lockAtRandom(t)
	}
}

// torment pauses processes that have just taken a lock, and kills two, until all have ended.
func torment(children []*redistest.Process, held <-chan int, ended <-chan struct{}) {
	for round := 1; ; round++ {
		victim := -1
		for range 12 {
			select {
			case <-ended:
				return
			case victim = <-held:
			}
		}
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
		return porcupine.Operation{Input: action{"n", read, giveUp}, Call: call, Output: fence, Return: ret}
	}
	for name, test := range map[string]struct {
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"two writers":                      {[]porcupine.Operation{op(false, false, 1, 1, 2), op(false, false, 2, 3, 4), op(false, true, 0, 5, 6)}, porcupine.Illegal},
		"a writer beside a reader":         {[]porcupine.Operation{op(true, false, 0, 1, 2), op(false, false, 2, 3, 4), op(true, true, 0, 5, 6)}, porcupine.Illegal},
		"a fence that does not grow":       {[]porcupine.Operation{op(false, false, 2, 1, 2), op(false, true, 0, 3, 4), op(false, false, 2, 5, 6)}, porcupine.Illegal},
		"a lease that was lost in between": {[]porcupine.Operation{op(false, false, 1, 1, 2), op(false, true, 0, 2, math.MaxInt64), op(false, false, 2, 3, 4)}, porcupine.Ok},
		"two readers":                      {[]porcupine.Operation{op(true, false, 0, 1, 2), op(true, false, 0, 3, 4)}, porcupine.Ok},
	} {
		if got := porcupine.CheckOperationsTimeout(perfect, test.history, time.Minute); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
