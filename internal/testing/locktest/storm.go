package locktest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// work increments what the store keeps, under the lock, until the process is killed. It says when it began to hold and when it
// last knew that it did, on the machine's clock.
func work(t *testing.T, k Locks, addr string) {
	store, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	answers := bufio.NewScanner(store)
	ask := func(verb string, l Lease, value int) (answer int) {
		if _, err := fmt.Fprintln(store, verb, l.Token(), l.Fence(), value); err != nil || !answers.Scan() {
			t.Fatal("the store is gone")
		}
		if _, err := fmt.Sscan(answers.Text(), &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for {
		wait, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		l, err := k.Lock(wait, "x")
		cancel()
		if err != nil {
			<-time.After(50 * time.Millisecond) // the server is away: do not ask in a circle
			continue
		}
		held := holding{fence: l.Fence(), from: time.Now()}
		held.alive(l)
		trusted := !held.to.IsZero() // else it was frozen in between until it was lost, and only the fence knows
		if trusted {
			fmt.Println("began", held.fence, held.from.UnixNano())
		}
		if value := ask("read", l, 0); value != refused {
			held.alive(l)
			ask("write", l, value+1)
		}
		held.alive(l)
		if trusted {
			fmt.Println("ended", held.fence, held.to.UnixNano())
		}
		_ = l.Unlock(context.Background())          // that it was lost is what the fence is for
		<-time.After(rand.N(10 * time.Millisecond)) // somebody has the lock nearly all the time, and other tests have the processor
	}
}

// holding is a time during which a lock was held.
type holding struct {
	fence    int64
	from, to time.Time
}

// alive notes that the lease is trusted, if it is.
func (h *holding) alive(l Lease) {
	now := time.Now()
	if l.Context().Err() == nil {
		h.to = now
	}
}

// tempest is some processes that work, and what disturbs them.
type tempest struct {
	*bench

	store   *fencedStore
	fenced  bool // two may believe that they hold the lock: fences alone protect the store
	workers []*redistest.Process
	dead    []*redistest.Process
}

// workers is how many processes work in a storm.
const workers = 3

func (b *bench) storm() *tempest {
	s := &tempest{bench: b, store: startStore(b)}
	for range workers {
		s.workers = append(s.workers, s.worker())
	}
	s.goesOn(3)
	return s
}

func (s *tempest) worker() *redistest.Process {
	return s.child("storm", "STORE="+s.store.listener.Addr().String())
}

// goesOn waits until n more increments are there.
func (s *tempest) goesOn(n int) {
	s.Helper()
	before := s.store.progress()
	await(s, "the processes go on", func() bool { return s.store.progress() >= before+n })
}

// kill kills a process, whatever it does just then, and starts another.
func (s *tempest) kill(i int) {
	s.workers[i].Kill()
	s.dead = append(s.dead, s.workers[i])
	s.workers[i] = s.worker()
}

// end kills all, and checks what they said: no two of them held the lock at the same time, and their fences
// only grow.
func (s *tempest) end() {
	for _, w := range s.workers {
		w.Kill()
	}
	var all []holding
	for _, w := range append(s.workers, s.dead...) {
		all = append(all, s.holdings(w)...)
	}
	overlap := time.Duration(0) // the longest
	slices.SortFunc(all, func(a, b holding) int { return a.from.Compare(b.from) })
	for i, h := range all[1:] {
		before := all[i]
		if h.fence <= before.fence {
			s.Errorf("fence %d at %v after %d at %v", h.fence, h.from, before.fence, before.from)
		}
		overlap = max(overlap, before.to.Sub(h.from))
		if h.from.Before(before.to) && !s.fenced {
			s.Errorf("fence %d was held until %v, and fence %d from %v", before.fence, before.to, h.fence, h.from)
		}
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	for _, p := range s.store.problems {
		s.Error(p)
	}
	if s.store.value != s.store.written {
		s.Errorf("%d increments and the value %d", s.store.written, s.store.value)
	}
	s.Logf("%d times held, by two at once for %v at most, %d increments, %d refused", len(all), overlap, s.store.written, s.store.refused)
}

// holdings reads what a process that has ended has said.
func (s *tempest) holdings(p *redistest.Process) (all []holding) {
	for {
		line, err := p.ReadLine(patient(s))
		if err != nil {
			return all
		}
		var verb string
		var fence, at int64
		if _, err := fmt.Sscan(line, &verb, &fence, &at); err != nil {
			continue // the last line of one that was killed
		}
		switch {
		case strings.HasSuffix(verb, "began"):
			all = append(all, holding{fence, time.Unix(0, at), time.Unix(0, at)})
		case len(all) > 0 && all[len(all)-1].fence == fence:
			all[len(all)-1].to = time.Unix(0, at)
		}
	}
}

// storm kills and freezes processes.
func storm(b *bench) {
	s := b.storm()
	for i := range expect.Samples(2, 4) {
		s.kill(i % workers)
		s.goesOn(2)
		frozen := s.workers[(i+1)%workers]
		frozen.Pause()
		s.goesOn(2)
		frozen.Resume()
		s.goesOn(2)
	}
	s.end()
}
