package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

const (
	keys = 16 // the first half is updated, the other one invalidated
	ttl  = 2 * time.Second
)

func TestChildThatIsDisturbed(t *testing.T) {
	if redistest.IsChild(t) {
		newWorker(t).run()
	}
}

// worker is what a process does.
type worker struct {
	*testing.T
	guard *cacheguard.Guard
	locks *mutex.Locker
	cas   *cas.Store
	rdb   redis.UniversalClient // of the Redis that is disturbed
	truth truth
	log   *os.File
	wrong bool // it makes the usual mistakes
}

// newWorker opens what the environment names.
func newWorker(t *testing.T) *worker {
	w := &worker{T: t, wrong: os.Getenv("WRONG") != ""}
	w.rdb = redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: strings.Split(os.Getenv("ADDRS"), ","), MasterName: os.Getenv("MASTER"), IsClusterMode: os.Getenv("CLUSTER") != "",
	})
	w.truth = truth{redis.NewClient(&redis.Options{Addr: os.Getenv("TRUTH")})}
	client := w.rdb.(cacheguard.Redis)
	var errs [4]error
	w.guard, errs[0] = cacheguard.New(client, cacheguard.Config{Prefix: "chaos", TTL: ttl, LeaseTTL: lease})
	locks := mutex.Config{Prefix: "chaos-lock", TTL: lease}
	if w.wrong {
		locks.Watchdog = -1
	}
	w.locks, errs[1] = mutex.New(client, locks)
	w.cas, errs[2] = cas.New(client, cas.Config{Prefix: "chaos-cas", TTL: -1})
	w.log, errs[3] = os.OpenFile(os.Getenv("LOG"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _, _ = w.guard.Close(), w.locks.Close(), w.cas.Close() // always nil
		_, _, _ = w.rdb.Close(), w.truth.Close(), w.log.Close()   // all is done
	})
	return w
}

// run works until the parent says stop.
func (w *worker) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { // owner: the test; stop: a line from the parent, or its end; joined below
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		cancel()
	})
	for _, job := range []func(context.Context){w.read, w.read, w.read, w.update, w.invalidate, w.lock, w.swap} {
		all.Go(func() { // owner: the test; stop: ctx; joined below
			for ctx.Err() == nil {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				job(ctx)
				cancel()
				<-time.After(rand.N(4 * time.Millisecond))
			}
		})
	}
	all.Wait()
}

func now() int64 { return time.Now().UnixNano() }

// note writes a line in one call, so that a process that is killed leaves whole lines.
func (w *worker) note(kind, row string, version, called int64) {
	_, _ = fmt.Fprintln(w.log, kind, row, version, called, now()) // the parent misses what is not there
}

func rowOf(i int) string { return fmt.Sprint("row", i) }

func (w *worker) read(ctx context.Context) {
	row, called := rowOf(rand.N(keys)), now()
	version, err := cacheguard.Get(ctx, w.guard, row, func(ctx context.Context) (int64, error) {
		version, err := w.truth.look(ctx, row, 0)
		<-time.After(rand.N(10 * time.Millisecond)) // the database takes its time
		return version, err
	})
	if err == nil {
		w.note("get", row, version, called)
	}
}

func (w *worker) update(ctx context.Context) {
	row, called, version := rowOf(rand.N(keys/2)), now(), int64(0)
	write := func(ctx context.Context) (err error) {
		fence, _ := rwlock.FenceFrom(ctx)
		version, err = w.truth.increase(ctx, row, fence)
		return err
	}
	var err error
	if w.wrong {
		if err = w.guard.Invalidate(ctx, row); err == nil { // before the write: what is loaded now is old
			err = write(ctx)
		}
	} else {
		err = w.guard.Update(ctx, row, write)
	}
	if err == nil {
		w.note("wrote", row, version, called)
	}
}

func (w *worker) invalidate(ctx context.Context) {
	row, called := rowOf(keys/2+rand.N(keys/2)), now()
	version, err := w.truth.increase(ctx, row, 0)
	if err == nil && w.guard.Invalidate(ctx, row) == nil {
		w.note("wrote", row, version, called)
	}
}

// lock counts, under a lock. The usual mistake is to work on after the lease, and not to show the fence.
func (w *worker) lock(ctx context.Context) {
	const row = "counted under a lock"
	_ = w.locks.Do(ctx, "count", func(_ context.Context, l *mutex.Lease) error { // what counts is what was written
		fence := l.Fence()
		if w.wrong {
			fence = 0
		}
		count, err := w.truth.look(ctx, row, fence)
		if err != nil {
			return err
		}
		<-time.After(rand.N(20 * time.Millisecond))
		if w.wrong && rand.N(10) == 0 {
			<-time.After(lease + lease/2)
		}
		called := now()
		w.note("tries", "lock", 0, called)
		if err = w.truth.set(ctx, row, fence, count+1); err == nil {
			w.note("adds", "lock", 0, called)
		}
		return err
	})
}

// swap counts in the Redis that is disturbed. The usual mistake is to read and write.
func (w *worker) swap(ctx context.Context) {
	called := now()
	w.note("tries", "swap", 0, called)
	if w.wrong {
		count, err := w.rdb.Get(ctx, "wrong").Int64()
		if err != nil && !errors.Is(err, redis.Nil) || w.rdb.Set(ctx, "wrong", count+1, 0).Err() != nil {
			return
		}
	} else if _, err := cas.Update(ctx, w.cas, "count", func(old int64, _ bool) (int64, error) { return old + 1, nil }); err != nil {
		return
	}
	w.note("adds", "swap", 0, called)
}
