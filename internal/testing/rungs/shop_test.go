package rungs

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/leaks"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// ttl of the write locks: as short as a machine that stalls now and then allows.
const ttl = 4 * time.Second

// shop is some processes with a cache before a source, whose updates hold locks of a rung.
type shop struct {
	*testing.T

	locks  *Started
	redis  *redistest.Server
	source source
}

// source is what the cache stands before. It refuses a write whose fence is smaller than one it has seen.
type source struct {
	mu       sync.Mutex
	value    int
	fence    int64
	finished int // the value of the last update that has returned
}

var errRefused = errors.New("the fence is smaller than one before")

// write increments the value, under the fence of an update.
func (s *source) write(fence int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fence < s.fence {
		return errRefused
	}
	s.fence = fence
	s.value++
	return nil
}

func (s *source) read() (value, finished int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, s.finished
}

func (s *source) finish(value int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = max(s.finished, value)
}

// guard makes the Guard of a process.
func guard(tb testing.TB, r Rung, addr, redisAddr string) *cacheguard.Guard {
	tb.Helper()
	locks, err := r.Open(addr, "writes", ttl)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = locks.Close() }) // it is of no use any more
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr})
	tb.Cleanup(func() { _ = rdb.Close() }) // as above
	g, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix: "shop", WriteLock: locks, LeaseTTL: 2 * time.Second, WaitTimeout: time.Second, RedisTimeout: 20 * time.Second,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = g.Close() }) // as above
	return g
}

func (s *shop) guard() *cacheguard.Guard { return guard(s, s.locks.Rung, s.locks.Addr, s.redis.Addr()) }

// get fails the test if it is older than an update that has returned before.
func (s *shop) get(g *cacheguard.Guard) {
	s.Helper()
	_, least := s.source.read()
	value, err := cacheguard.Get(s.Context(), g, "k", func(context.Context) (int, error) {
		value, _ := s.source.read()
		return value, nil
	})
	if err != nil {
		s.Error(err)
	} else if value < least {
		s.Errorf("got %d after the update to %d", value, least)
	}
}

// update writes under the lock's fence, and returns it.
func (s *shop) update(g *cacheguard.Guard) (fence int64, err error) {
	written := 0
	err = g.Update(s.Context(), "k", func(ctx context.Context) error {
		fence, _ = rwlock.FenceFrom(ctx)
		err := s.source.write(fence)
		written, _ = s.source.read()
		return err
	})
	s.source.finish(written) // also with an error: what was written is to be seen
	return fence, err
}

// updateAtLast updates when it can: a store that was disturbed may answer with errors for a while.
func (s *shop) updateAtLast(g *cacheguard.Guard) (fence int64) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; {
		fence, err := s.update(g)
		if err == nil {
			return fence
		}
		if time.Now().After(deadline) {
			s.Fatal(err)
		}
		<-time.After(50 * time.Millisecond) // do not ask in a circle
	}
}

// patience is how long a test waits before it fails.
const patience = 3 * time.Minute

// readers read all the time, from two processes, until stop is called.
func (s *shop) readers() (stop func()) {
	var reading sync.WaitGroup
	ended := make(chan struct{})
	for range 2 {
		g := s.guard()
		reading.Go(func() { // owner: the test; stop: ended; joined by stop
			for {
				select {
				case <-ended:
					return
				default:
					s.get(g)
				}
			}
		})
	}
	return func() {
		close(ended)
		reading.Wait()
	}
}
