package send

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestWhatNobodyWaitsForIsNotSent(t *testing.T) {
	t.Parallel()
	const crowd = 5000
	s := newStage(t, patient)
	release := s.occupied("k")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			expect.Fails(t, expect.Err(s.Do(ctx, "k", echoed("k", strconv.Itoa(i)))))
		})
		all.Go(func() {
			expect.Fails(t, expect.Err(s.Get(ctx, "k"+strconv.Itoa(i))))
		})
	}
	redistest.Await(t, "the crowd waits", func() bool {
		return s.reads[0].arrivals() == 1+crowd && s.calls[0].arrivals() == 1+crowd
	})
	cancel()
	all.Wait()
	release()
	ask(t, s.Link, "k").expectAbsence()
	do(t, s.Link, echoed("k", "after")).expect("after")
	if n := s.proxy.Commands(); n["get"] != 2 || n["mget"] != 0 || n["evalsha"] != 2 {
		t.Errorf("sent %v, want two reads and two calls", n)
	}
}

func TestThoseWhoStayAreServedAsIfTheOthersHadNeverCome(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keysOf(t, s.Link, 20)
	release := s.occupied("k")
	var reads []asking
	var calls []doing
	for i, key := range k {
		s.set(key, strconv.Itoa(i))
		reads = append(reads, ask(t, s.Link, key))
		calls = append(calls, do(t, s.Link, echoed("k", strconv.Itoa(i))))
	}
	var keys, words []string
	for i := range k {
		if i%2 == 0 {
			reads[i].giveUp()
			calls[i].giveUp()
			continue
		}
		keys, words = append(keys, k[i]), append(words, strconv.Itoa(i))
	}
	release()
	for i := 1; i < len(k); i += 2 {
		reads[i].expect(strconv.Itoa(i))
		calls[i].expect(strconv.Itoa(i))
	}
	sent := s.sent.all()[2:]
	if len(sent) != 2 || !slices.ContainsFunc(sent, func(b []string) bool { return slices.Equal(b, keys) }) ||
		!slices.ContainsFunc(sent, func(b []string) bool { return slices.Equal(b, words) }) {
		t.Errorf("sent %q, want %q and %q", sent, keys, words)
	}
}

func TestReadIsSentAsLongAsOneOfItsCallersWaits(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.set("k2", "v")
	release := s.occupied("k")
	leaves, stays := ask(t, s.Link, "k2"), ask(t, s.Link, "k2")
	leaves.giveUp()
	release()
	stays.expect("v")
}

// A caller may come back for what it has left.
func TestReadThatEveryoneLeftIsSentForThoseWhoComeLater(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.set("k2", "v")
	release := s.occupied("k")
	ask(t, s.Link, "k2").giveUp()
	comes := ask(t, s.Link, "k2")
	release()
	comes.expect("v")
}

func TestRequestWhoseContextHasEndedIsNotSent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newStage(t, patient)
	for range 20 {
		expect.Fails(t, expect.Err(s.Get(ctx, "k")))
		expect.Fails(t, expect.Err(s.Do(ctx, "k", echoed("k", "v"))))
	}
	if n := s.proxy.Commands(); n["get"] != 0 || n["evalsha"] != 0 {
		t.Errorf("sent %v", n)
	}
}

func TestQueueForgetsThoseWhoLeaveWhileTheLinkIsHeldUp(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	release := s.occupied("k")
	stays := do(t, s.Link, echoed("k", "stays"))
	lane := s.calls[0]
	for range 1000 {
		do(t, s.Link, echoed("k", "leaves")).giveUp()
		lane.mu.Lock()
		if n := lane.queue.(*callQueue).n; n > 1 {
			t.Fatalf("%d calls are queued, and one is waited for", n)
		}
		lane.mu.Unlock()
	}
	release()
	stays.expect("stays")
	lane.mu.Lock()
	defer lane.mu.Unlock()
	if q := lane.queue.(*callQueue); !q.empty() {
		t.Errorf("the queue has %d calls", q.n)
	}
}
