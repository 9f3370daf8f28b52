package slots

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cacheguard/go/internal/testing/expect"
)

// enqueue makes a load wait for a slot, and returns what ends its wait.
func enqueue(s *Slots, name string, callers int, granted chan<- string) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if s.Acquire(ctx, func() int { return callers }) {
			granted <- name
		}
	}()
	synctest.Wait()
	return cancel
}

func TestSlotGoesByTurnsToTheMostWantedLoadAndToTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, granted := New(1), make(chan string, 10)
		expect.Equal(t, "acquired", s.Acquire(t.Context(), func() int { return 1 }), true)
		for i, callers := range []int{1, 2, 1, 9, 5} {
			defer enqueue(s, fmt.Sprint(i), callers, granted)()
		}
		for _, want := range []string{"3", "0", "4", "1", "2"} {
			s.Release()
			expect.Equal(t, "granted", <-granted, want)
		}
		expect.Equal(t, "one more", s.TryAcquire(), false)
		s.Release()
		expect.Equal(t, "one more, when one is free", s.TryAcquire(), true)
	})
}

func TestLoadThatDoesNotWaitAnyMoreGetsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, granted := New(1), make(chan string, 10)
		expect.Equal(t, "acquired", s.TryAcquire(), true)
		leave := enqueue(s, "gone", 5, granted)
		defer enqueue(s, "there", 1, granted)()
		leave()
		synctest.Wait()
		s.Release()
		expect.Equal(t, "granted", <-granted, "there")
	})
}

// A grant and the end of the context may come together; the slot must not be lost.
func TestSlotGrantedToALoadThatLeavesIsNotLost(t *testing.T) {
	t.Parallel()
	for range 2000 {
		s := New(1)
		s.TryAcquire()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if s.Acquire(ctx, func() int { return 1 }) {
				s.Release()
			}
		})
		wg.Go(s.Release)
		wg.Go(cancel)
		wg.Wait()
		if !s.TryAcquire() {
			t.Fatal("the slot is lost")
		}
	}
}

func TestACrowdIsFoundAmongAnyNumberOfOthers(t *testing.T) {
	t.Parallel()
	s := New(1)
	s.TryAcquire()
	hot := &queuedLoad{callers: func() int { return 2 }, granted: make(chan struct{})}
	for i := range 40 * Searched {
		q := &queuedLoad{callers: func() int { return 1 }, granted: make(chan struct{})}
		if i == 33*Searched {
			q = hot
		}
		s.queue = append(s.queue, q)
	}
	for range 2*40 + 2 {
		s.Release()
	}
	select {
	case <-hot.granted:
	default:
		t.Error("not found in a whole round")
	}
}

func TestACrowdIsFoundAtOnceInAShortQueueThatOthersKeepJoining(t *testing.T) {
	t.Parallel()
	s := New(1)
	s.TryAcquire()
	join := func(callers int) *queuedLoad {
		q := &queuedLoad{callers: func() int { return callers }, granted: make(chan struct{})}
		s.queue = append(s.queue, q)
		return q
	}
	for range 10 {
		join(1)
	}
	hot := join(9)
	for range 3 {
		join(1)
		join(9) // the crowd's turn goes to the older one
		s.Release()
		s.Release()
		select {
		case <-hot.granted:
		default:
			t.Error("the slot went to others")
		}
		hot = s.queue[slices.IndexFunc(s.queue, func(q *queuedLoad) bool { return q.callers() == 9 })]
	}
}
