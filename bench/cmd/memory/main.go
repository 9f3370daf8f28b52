// Memory prints what a Guard with 1, 20 and 100 Caches takes of this process, and what 10,000 keys that are loaded at the same time add:
// goroutines, and bytes of the heap and of stacks. 10,000 keys by hand, a GET and a load without a library, stand beside it.
//
//	go run ./bench/cmd/memory
//	go run ./bench/cmd/memory -profile heap.out    # what is on the heap with the most caches, while their keys are loaded
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/cacheguard"
)

func main() {
	profile := flag.String("profile", "", "write a profile of the heap to this `file`")
	inFlight := flag.Int("keys", 10_000, "how many keys are loaded at once")
	flag.Parse()
	if *profile != "" {
		runtime.MemProfileRate = 512
	}
	if err := run(context.Background(), *inFlight, *profile); err != nil {
		log.Fatal(err)
	}
}

// size is what this process uses.
type size struct {
	goroutines  int
	heap, stack int64
}

func now() size {
	runtime.GC()
	runtime.GC() // what was in a sync.Pool survives one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return size{runtime.NumGoroutine(), int64(m.HeapAlloc), int64(m.StackInuse)}
}

func (s size) since(before size) size {
	return size{s.goroutines - before.goroutines, s.heap - before.heap, s.stack - before.stack}
}

func run(ctx context.Context, inFlight int, profile string) error {
	s, err := server.Start()
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("| | goroutines, warm | heap, warm, KiB | goroutines by key in flight | heap by key | stacks by key |")
	fmt.Println("|---|---:|---:|---:|---:|---:|")
	for _, caches := range []int{0, 1, 20, 100} {
		file := ""
		if caches == 100 {
			file = profile
		}
		if err := measure(ctx, s, caches, inFlight, file); err != nil {
			return err
		}
	}
	return nil
}

// measure prints the row of so many caches; 0: by hand.
func measure(ctx context.Context, s *server.Server, caches, inFlight int, profile string) error {
	before := now()
	o := s.Options()
	o.PoolSize, o.PoolTimeout = 20, time.Minute // of 10,000 callers by hand
	rdb := redis.NewClient(o)
	defer rdb.Close()
	held := newLoads()
	get, closed, err := open(rdb, caches, held)
	if err != nil {
		return err
	}
	for i := range max(caches, 1) { // connections, scripts, and each cache once
		if err := get(ctx, i); err != nil {
			return err
		}
	}
	if err := s.Calm(ctx); err != nil {
		return err
	}
	warm := now()
	held.hold(inFlight)
	var all sync.WaitGroup
	errs := make([]error, inFlight)
	for i := range inFlight {
		all.Go(func() { errs[i] = get(ctx, 1_000_000+i) }) // owner: measure; ends with its load; joined below
	}
	<-held.full
	loading := now()
	if profile != "" {
		if err := write(profile); err != nil {
			return err
		}
	}
	close(held.release)
	all.Wait()
	row(caches, warm.since(before), loading.since(warm), float64(inFlight))
	return errors.Join(errors.Join(errs...), closed(), s.Control().FlushDB(ctx).Err())
}

func row(caches int, warm, more size, keys float64) {
	name := "by hand"
	if caches > 0 {
		name = fmt.Sprintf("caches: %d", caches)
	}
	fmt.Printf("| %s | %d | %.0f | %.2f | %.0f B | %.0f B |\n",
		name, warm.goroutines, float64(warm.heap)/1024, float64(more.goroutines)/keys, float64(more.heap)/keys, float64(more.stack)/keys)
}

func write(profile string) error {
	f, err := os.Create(profile)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

// open returns how to get the i-th key, of the caches in turn.
func open(rdb *redis.Client, caches int, held *loads) (get func(context.Context, int) error, closed func() error, err error) {
	if caches == 0 {
		return func(ctx context.Context, i int) error {
			key := "memory:" + strconv.Itoa(i)
			if err := rdb.Get(ctx, key).Err(); !errors.Is(err, redis.Nil) {
				return err
			}
			v, _ := held.load(ctx, i) // always nil
			return rdb.Set(ctx, key, v, time.Hour).Err()
		}, func() error { return nil }, nil
	}
	g, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "memory", TTL: time.Hour, MaxLoads: -1, LeaseTTL: time.Minute}) // no renewals meanwhile
	if err != nil {
		return nil, nil, err
	}
	of := make([]*cacheguard.Cache[int, []byte], caches)
	for i := range of {
		of[i], err = cacheguard.NewCache(g, cacheguard.CacheConfig[int, []byte]{Name: "kind" + strconv.Itoa(i), Load: held.load})
		if err != nil {
			return nil, nil, errors.Join(err, g.Close())
		}
	}
	return func(ctx context.Context, i int) error {
		_, err := of[i%caches].Get(ctx, i)
		return err
	}, g.Close, nil
}

// loads end at once, or, when held, together.
type loads struct {
	value         []byte
	mu            sync.Mutex
	left          int
	full, release chan struct{} // nil: no load waits
}

func newLoads() *loads { return &loads{value: make([]byte, 1024)} }

// hold has the loads from now on wait for release. full is closed when so many wait.
func (l *loads) hold(n int) {
	l.left, l.full, l.release = n, make(chan struct{}), make(chan struct{})
}

func (l *loads) load(context.Context, int) ([]byte, error) {
	if l.release == nil {
		return l.value, nil
	}
	l.mu.Lock()
	if l.left--; l.left == 0 {
		close(l.full)
	}
	l.mu.Unlock()
	<-l.release
	return l.value, nil
}
