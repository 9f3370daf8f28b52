package cacheguard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/redistest"
)

// enqueue makes a load wait for a slot, and returns what ends its wait.
func enqueue(s *slots, name string, callers int, granted chan<- string) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if s.acquire(ctx, func() int { return callers }) {
			granted <- name
		}
	}()
	synctest.Wait()
	return cancel
}

func TestSlotGoesByTurnsToTheMostWantedLoadAndToTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, granted := newSlots(1), make(chan string, 10)
		equal(t, "acquired", s.acquire(t.Context(), func() int { return 1 }), true)
		for i, callers := range []int{1, 2, 1, 9, 5} {
			defer enqueue(s, fmt.Sprint(i), callers, granted)()
		}
		for _, want := range []string{"3", "0", "4", "1", "2"} {
			s.release()
			equal(t, "granted", <-granted, want)
		}
		equal(t, "one more", s.tryAcquire(), false)
		s.release()
		equal(t, "one more, when one is free", s.tryAcquire(), true)
	})
}

func TestLoadThatDoesNotWaitAnyMoreGetsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, granted := newSlots(1), make(chan string, 10)
		equal(t, "acquired", s.tryAcquire(), true)
		leave := enqueue(s, "gone", 5, granted)
		defer enqueue(s, "there", 1, granted)()
		leave()
		synctest.Wait()
		s.release()
		equal(t, "granted", <-granted, "there")
	})
}

// A grant and the end of the context may come together; the slot must not be lost.
func TestSlotGrantedToALoadThatLeavesIsNotLost(t *testing.T) {
	t.Parallel()
	for range 2000 {
		s := newSlots(1)
		s.tryAcquire()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if s.acquire(ctx, func() int { return 1 }) {
				s.release()
			}
		})
		wg.Go(s.release)
		wg.Go(cancel)
		wg.Wait()
		if !s.tryAcquire() {
			t.Fatal("the slot is lost")
		}
	}
}

func TestACrowdIsFoundAmongAnyNumberOfOthers(t *testing.T) {
	t.Parallel()
	s := newSlots(1)
	s.tryAcquire()
	hot := &queuedLoad{callers: func() int { return 2 }, granted: make(chan struct{})}
	for i := range 40 * searched {
		q := &queuedLoad{callers: func() int { return 1 }, granted: make(chan struct{})}
		if i == 33*searched {
			q = hot
		}
		s.queue = append(s.queue, q)
	}
	for range 2*40 + 2 {
		s.release()
	}
	select {
	case <-hot.granted:
	default:
		t.Error("not found in a whole round")
	}
}

func TestACrowdIsFoundAtOnceInAShortQueueThatOthersKeepJoining(t *testing.T) {
	t.Parallel()
	s := newSlots(1)
	s.tryAcquire()
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
		s.release()
		s.release()
		select {
		case <-hot.granted:
		default:
			t.Error("the slot went to others")
		}
		hot = s.queue[slices.IndexFunc(s.queue, func(q *queuedLoad) bool { return q.callers() == 9 })]
	}
}

// Ten thousand cold keys want to be loaded, and then a hot one.
func TestColdKeysDoNotStarveAHotOneNorExceedMaxLoads(t *testing.T) {
	t.Parallel()
	const cold, callers, maxLoads = 10_000, 50, 8
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: maxLoads, RedisTimeout: time.Minute}) // so many at once are slow
	g := f.guards[0]
	var running, most, loads atomic.Int64
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open) // or Close would wait for ever
	load := func(context.Context) (int, error) {
		now := running.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		defer running.Add(-1)
		loads.Add(1)
		<-gate
		return 1, nil
	}
	var all sync.WaitGroup
	ask := func(key string, load func(context.Context) (int, error)) {
		all.Go(func() {
			if v, err := Get(context.Background(), g, key, load); err != nil || v != 1 {
				t.Error(key, v, err)
			}
		})
	}
	for i := range cold {
		ask(fmt.Sprint("cold", i), load)
	}
	queued := func() int {
		g.slots.mu.Lock()
		defer g.slots.mu.Unlock()
		return len(g.slots.queue)
	}
	redistest.Await(t, "the cold ones wait", func() bool { return queued() == cold-maxLoads })
	var before int64
	for range callers {
		ask("hot", func(ctx context.Context) (int, error) {
			before = loads.Load()
			return load(ctx)
		})
	}
	awaitCallers[int](f, 0, "hot", callers)
	redistest.Await(t, "the hot one waits", func() bool { return queued() == cold-maxLoads+1 })
	open()
	all.Wait()
	equal(t, "loads", loads.Load(), cold+1)
	if limit := int64(2*cold/searched + 2*maxLoads); before > limit {
		t.Errorf("%d loads began before that of the hot key, want at most %d", before, limit)
	}
	if most.Load() > maxLoads {
		t.Errorf("%d loads at once", most.Load())
	}
}
