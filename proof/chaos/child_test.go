package chaos

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	callers  = 6               // of a process, at once
	patience = 5 * time.Second // of a call
)

func TestChildThatIsDisturbed(t *testing.T) {
	if redistest.IsChild(t) {
		newWorker(t).run()
	}
}

// worker is what a process does.
type worker struct {
	*testing.T
	name  string // of the process
	index int    // which of them it is; others have taken the same place before
	bulk  int    // how many keys are read together
	most  int    // of thousands that one call asks for
	wrong bool   // it makes the usual mistakes
	ttl   time.Duration
	think time.Duration         // between two calls of a caller
	wait  time.Duration         // RedisTimeout
	rdb   redis.UniversalClient // of the Redis that is disturbed
	truth truth
	log   *os.File
	locks *mutex.Locker
	cas   *cas.Store

	opened atomic.Pointer[opened] // replaced now and then
	opens  atomic.Int64
	dies   atomic.Bool // in its next update
	did    sync.Map    // operations
	memory sync.Map    // of the usual mistakes

	crowded sync.Mutex // some of its callers ask for thousands
}

// newWorker opens what the environment names.
func newWorker(t *testing.T) *worker {
	w := &worker{T: t, name: strconv.Itoa(os.Getpid()), wrong: os.Getenv("WRONG") != ""}
	var errs [9]error
	w.index, errs[0] = strconv.Atoi(os.Getenv("INDEX"))
	w.ttl, errs[1] = time.ParseDuration(cmp.Or(os.Getenv("TTL"), "1m"))
	w.wait, errs[2] = time.ParseDuration(cmp.Or(os.Getenv("REDISTIMEOUT"), "500ms"))
	w.think, errs[3] = time.ParseDuration(cmp.Or(os.Getenv("THINK"), "4ms"))
	w.rdb = redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: strings.Split(os.Getenv("ADDRS"), ","), MasterName: os.Getenv("MASTER"), IsClusterMode: os.Getenv("CLUSTER") != "",
	})
	w.truth = truth{redis.NewClient(&redis.Options{Addr: os.Getenv("TRUTH"), ReadTimeout: time.Minute})}
	locks := mutex.Config{Prefix: "chaos-lock", TTL: lease}
	if w.wrong {
		locks.FixedLease = true
	}
	w.locks, errs[4] = mutex.New(w.rdb.(mutex.Redis), locks)
	w.cas, errs[5] = cas.New(w.rdb.(cas.Redis), cas.Config{Prefix: "chaos-cas", TTL: -1})
	w.log, errs[6] = os.OpenFile(os.Getenv("LOG"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	w.bulk, errs[7] = strconv.Atoi(os.Getenv("BULK"))
	w.most, errs[8] = strconv.Atoi(os.Getenv("MOST"))
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	w.opened.Store(w.open())
	return w
}

// run works until the parent says stop.
func (w *worker) run() {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { w.listen(stop) }) // owner: the test; stop: a line from the parent, or its end; joined below
	all.Go(func() { w.watch(ctx) })   // owner: the test; stop: ctx; joined below
	do := operations
	if w.wrong {
		do = mistakes
	}
	first := slices.Collect(maps.Keys(do)) // each once, in any order
	for share := range slices.Chunk(first, (len(first)+callers-1)/callers) {
		all.Go(func() { w.call(ctx, do, share) }) // owner: the test; stop: ctx; joined below
	}
	<-ctx.Done()
	hangs := time.AfterFunc(40*time.Second, func() {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1) // the parent shows it
		panic("a call does not end, or Close does not")
	})
	all.Wait()
	_, _, _ = w.opened.Load().close(), w.locks.Close(), w.cas.Close() // always nil
	_, _, _ = w.rdb.Close(), w.truth.Close(), w.log.Close()           // all is done
	hangs.Stop()
}

func (w *worker) listen(stop func()) {
	defer stop()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan() && lines.Text() != "stop"; {
		w.dies.Store(true)
	}
}

// watch notes when the process stands still, and when loads run beside a Redis that keeps calls waiting.
func (w *worker) watch(ctx context.Context) {
	var of *opened
	hedged := 0.0
	for last := now(); ctx.Err() == nil; {
		<-time.After(20 * time.Millisecond)
		at := now()
		if at-last > int64(300*time.Millisecond) {
			w.note(event{Kind: starved, Guard: w.name, From: last, To: at})
		}
		o := w.opened.Load()
		if n := o.guard.Stats().Of("hedged_loads_total"); n > 0 && (o != of || n > hedged) {
			w.note(event{Kind: repeats, Guard: o.name, From: last, To: at})
			hedged = n
		}
		of, last = o, at
	}
}

// call does some of the operations, by their frequency, after the first ones.
func (w *worker) call(ctx context.Context, all map[string]operation, first []string) {
	var lots, writes []string
	for name, o := range all {
		for range o.often {
			lots = append(lots, name)
		}
		if o.writes {
			writes = append(writes, name)
		}
	}
	for ctx.Err() == nil {
		name := lots[rand.N(len(lots))]
		switch {
		case w.dies.Load():
			name = writes[rand.N(len(writes))]
		case len(first) > 0:
			name, first = first[0], first[1:]
		}
		w.do(name, all[name])
		<-time.After(rand.N(2 * w.think))
	}
}

func (w *worker) do(name string, o operation) {
	from := now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := o.do(w, ctx, w.opened.Load())
	if deadline, _ := ctx.Deadline(); now() > deadline.UnixNano() {
		w.note(event{Kind: late, Guard: w.name, How: name, From: from, Deadline: deadline.UnixNano()})
	}
	if err != nil && ctx.Err() == nil && slices.Contains(named, name) && !isNamed(err) {
		w.note(event{Kind: misjudged, Guard: w.name, How: fmt.Sprintf("%s: an error without a name: %v", name, err), From: from})
	}
	if _, before := w.did.LoadOrStore(name, err == nil); err == nil && !before {
		w.note(event{Kind: done, How: name, From: from})
	} else if err != nil {
		w.did.Delete(name)
	}
}

// isNamed reports whether docs/guarantees.md has an error of a call that changes something. Others are of the write itself.
func isNamed(err error) bool {
	if of := new(cacheguard.RedisError); errors.As(err, &of) {
		return slices.Contains([]string{"invalidate", "update", "intend"}, of.Op)
	}
	return strings.Contains(err.Error(), "rwlock: unlock") || slices.ContainsFunc([]error{cacheguard.ErrClosed, rwlock.ErrLeaseLost, rwlock.ErrRevoked, rwlock.ErrClosed, context.Canceled, errFenced, errFaulty}, func(target error) bool {
		return errors.Is(err, target)
	})
}

// note writes a line in one call, so that a process that is killed leaves whole lines.
func (w *worker) note(e event) {
	if e.To == 0 {
		e.To = now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	_, _ = w.log.Write(append(line, '\n')) // the parent misses what is not there
}

func someRow() string { return fmt.Sprint("row", rand.N(rows)) }

// failed notes an error that nobody caused.
func (w *worker) failed(ctx context.Context, o *opened, key string, from int64, err error) error {
	if ctx.Err() == nil && !errors.Is(err, cacheguard.ErrClosed) {
		w.note(event{Kind: failed, Guard: o.name, Key: key, How: err.Error(), From: from})
	}
	return err
}
