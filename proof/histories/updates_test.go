package histories

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

const (
	writers    = 4
	increments = 10 // of each writer
)

// store writes a row unless it has seen a larger fence. Fence 0 stands for a writer that does not show its fence.
var store = redis.NewScript(`
local fence = tonumber(ARGV[2])
if fence > 0 and fence < tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) then
  return 0
end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'fence', ARGV[2])
return 1`)

// increment is what a child does: it reads the row under the lock, waits for its parent, and writes it back, until that many
// increments were stored. It says "read", and "stored" or "refused".
func increment(t *testing.T) {
	locks, rdb := openLocks(t)
	lines := bufio.NewScanner(os.Stdin)
	row := os.Getenv("PREFIX") + ":row"
	for stored := 0; stored < increments; {
		l, err := locks.lock(context.Background(), "row", false)
		if errors.Is(err, mutex.ErrLeaseLost) || errors.Is(err, rwlock.ErrLeaseLost) {
			continue // the machine stood still for longer than the lease
		}
		if err != nil {
			t.Fatal(err)
		}
		value, _ := rdb.HGet(context.Background(), row, "value").Int() // 0 before the first
		fence := int64(0)
		if os.Getenv("FENCES") == "yes" {
			fence = l.Fence()
		}
		fmt.Println("read")
		lines.Scan() // between looking and writing anything may happen
		ok, err := store.Run(context.Background(), rdb, []string{row}, value+1, fence).Bool()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Unlock(context.Background()) // it may be lost, that is what the fence is for
		if ok {
			stored++
			fmt.Println("stored")
		} else {
			fmt.Println("refused")
		}
	}
	fmt.Println("done")
}

func TestChildThatIncrements(t *testing.T) {
	if redistest.IsChild(t) {
		increment(t)
	}
}

// TestFencesKeepUpdatesThatPausesWouldLose makes processes increment a row under the lock. Every fifth that has read it is paused until
// another one has stored, which its lease allows when it is over. With the fence checked, every increment that was stored counts; without,
// what overwrote another's does not.
func TestFencesKeepUpdatesThatPausesWouldLose(t *testing.T) {
	for _, kind := range kinds {
		for _, fences := range []string{"yes", "no"} {
			t.Run(kind+", fences: "+fences, func(t *testing.T) {
				t.Parallel()
				stored, value := runIncrements(t, kind, fences)
				if fences == "yes" && value != stored {
					t.Errorf("%d of %d updates are lost", stored-value, stored)
				}
				if fences == "no" && value >= stored {
					t.Errorf("%d of %d: without fences none is lost, so the pauses prove nothing", value, stored)
				}
			})
		}
	}
}

func runIncrements(t *testing.T, kind, fences string) (stored, value int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	prefix := "updates-" + rand.Text()
	score := &score{changed: make(chan struct{}, 1)}
	var all sync.WaitGroup
	for range writers {
		p := redistest.Child(t, "TestChildThatIncrements", environment(kind, prefix, "FENCES="+fences)...)
		all.Go(func() { // owner: the test; stop: the child's end; joined below
			if err := score.attend(ctx, p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	value, err := shared.Client(t).HGet(ctx, prefix+":row", "value").Int()
	if err != nil {
		t.Fatal(err)
	}
	return score.stored, value
}

// score counts what was stored, and pauses processes.
type score struct {
	mu      sync.Mutex
	reads   int
	stored  int
	running int
	changed chan struct{} // size 1: stored or running has changed
}

func (s *score) change(stored, running int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored += stored
	s.running += running
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *score) attend(ctx context.Context, p *redistest.Process) error {
	s.change(0, 1)
	defer s.change(0, -1)
	for {
		line, err := p.ReadLine(ctx)
		switch {
		case err != nil:
			return err
		case line == "done":
			return nil
		case line == "stored":
			s.change(1, 0)
		case line == "read":
			if err := s.pause(ctx, p); err != nil {
				return err
			}
			p.WriteLine("write")
		}
	}
}

// pause pauses every fifth process that has read, until another one has stored.
func (s *score) pause(ctx context.Context, p *redistest.Process) error {
	s.mu.Lock()
	s.reads++
	due, before := s.reads%5 == 0, s.stored
	s.mu.Unlock()
	if !due {
		return nil
	}
	p.Pause()
	defer p.Resume()
	for {
		s.mu.Lock()
		over := s.stored > before || s.running == 1
		s.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
