package cacheguard

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// Each round loses a primary whose replica had lost it a moment before, in the middle of invalidations and acquisitions. FAILOVERS
// says how many rounds: by default few, as each has servers of its own.
func TestAFailoverForgetsNothingThatAReplicaHasAcknowledged(t *testing.T) {
	t.Parallel()
	for name, deploy := range expect.Some(1, map[string]func(*testing.T) deployment{"sentinel": underSentinel, "cluster": asCluster}) {
		for _, replicas := range []int{0, 1} {
			expect.Beside(t, fmt.Sprintf("%s, Replicas %d", name, replicas), func(t *testing.T) {
				var total forgotten
				for range rounds(t) {
					t.Run("round", func(t *testing.T) { total.add(loseAPrimary(t, deploy(t), replicas)) })
				}
				t.Logf("forgotten: %d of %d invalidations, %d of %d locks, in %d of %d rounds",
					total.invalidations, total.acknowledged, total.locks, total.granted, total.rounds, rounds(t))
				switch lost := total.invalidations + total.locks; {
				case replicas > 0 && lost > 0:
					t.Error("what was acknowledged was forgotten")
				case replicas == 0 && lost == 0:
					t.Error("the test loses nothing, and so shows nothing")
				}
			})
		}
	}
}

func rounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("FAILOVERS"))
	if err != nil {
		return 1
	}
	return n
}

// forgotten counts what a failover has forgotten.
type forgotten struct{ invalidations, acknowledged, locks, granted, rounds int }

func (f *forgotten) add(more forgotten) {
	f.invalidations += more.invalidations
	f.acknowledged += more.acknowledged
	f.locks += more.locks
	f.granted += more.granted
	if more.invalidations+more.locks > 0 {
		f.rounds++
	}
}

// losing is what goes on when a primary is lost.
type losing struct {
	*testing.T
	guard *Guard
	locks *mutex.Locker
	keys  []string // whose values primary and replica have

	work              chan string  // keys
	begun, done       atomic.Int64 // keys
	lost              atomic.Bool
	removed, acquired sync.Map // keys whose invalidation was acknowledged, tokens of acknowledged locks by name
}

// perPhase is how many keys there are before and after the replica is lost.
const perPhase = 100

func loseAPrimary(t *testing.T, d deployment, replicas int) forgotten {
	w := newLosing(t, d, replicas)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() { w.write(w.invalidate) })
		writers.Go(func() { w.write(w.lock) })
	}
	w.send(w.keys[:perPhase])
	redistest.Await(t, "all is done", func() bool { return w.done.Load() == perPhase })
	d.primary.CutOff(d.replica)
	w.send(w.keys[perPhase:])
	close(w.work)
	redistest.Await(t, "more is done, or waits", func() bool {
		return w.done.Load() > perPhase*3/2 || replicas > 0 && w.begun.Load() >= perPhase+8
	})
	w.lost.Store(true)
	d.primary.Kill()
	d.replica.Resume()
	redistest.Await(t, "the replica is the primary", func() bool { return role(d.replica) == "master" })
	writers.Wait()
	return w.forgottenBy(d.replica)
}

// newLosing makes a Guard and a Locker, and values that the primary and its replica have.
func newLosing(t *testing.T, d deployment, replicas int) *losing {
	t.Helper()
	prefix := "test-" + rand.Text()
	w := &losing{T: t, work: make(chan string, 2*perPhase), guard: newGuard(t, d.client(t), Config{
		Prefix: prefix, TTL: time.Hour, Replicas: replicas,
	})}
	var err error
	if w.locks, err = mutex.New(d.client(t), mutex.Config{Prefix: prefix + "-locks", TTL: 10 * time.Minute, Replicas: replicas}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.locks.Close() }) // always nil
	rdb := d.primary.Client(t)
	for i := 0; len(w.keys) < 2*perPhase; i++ {
		key := fmt.Sprint("k", i)
		if rdb.Set(t.Context(), w.guard.keys.ValueKey(key), "value", 0).Err() == nil {
			w.keys = append(w.keys, key) // otherwise another node of the cluster has it
		}
	}
	redistest.Await(t, "the replica has all values", func() bool {
		n, err := d.replica.Client(t).DBSize(t.Context()).Result()
		return err == nil && n == 2*perPhase
	})
	return w
}

func (w *losing) send(keys []string) {
	for _, key := range keys {
		w.work <- key // there is room for all
	}
}

// write does something with one key after the other, until the primary is lost.
func (w *losing) write(do func(key string)) {
	for key := range w.work {
		if w.lost.Load() {
			return
		}
		w.begun.Add(1)
		do(key)
		w.done.Add(1)
	}
}

func (w *losing) invalidate(key string) {
	if w.guard.Invalidate(context.Background(), key) == nil && !w.lost.Load() {
		w.removed.Store(key, true)
	}
}

func (w *losing) lock(key string) {
	l, err := w.locks.TryLock(context.Background(), key)
	if err == nil && !w.lost.Load() {
		w.acquired.Store(key, l.Token())
	}
}

// forgottenBy looks at the new primary.
func (w *losing) forgottenBy(s *redistest.Server) (f forgotten) {
	rdb := s.Client(w)
	w.removed.Range(func(key, _ any) bool {
		f.acknowledged++
		n, err := rdb.Exists(w.Context(), w.guard.keys.ValueKey(key.(string))).Result()
		if err != nil {
			w.Fatal(err)
		}
		f.invalidations += int(n)
		return true
	})
	w.acquired.Range(func(key, token any) bool {
		f.granted++
		holder, _ := rdb.HGet(w.Context(), keys.Tagged(w.guard.cfg.Prefix+"-locks", key.(string))+":mutex", "token").Result() // without one: empty
		if holder != token.(string) {
			f.locks++
		}
		return true
	})
	return f
}
