package plugins

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/leaks"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var server *redistest.Server

// TestMain is redistest.Main, but for goroutines of libraries that sleep for a while, and cannot be stopped.
func TestMain(m *testing.M) {
	s, stop, err := redistest.StartForMain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server = s
	code := leaks.Run(m,
		"github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial", // as in redistest.Main
		"github.com/valyala/fasthttp.updateServerDate.func1",
		"github.com/vikstrous/dataloadgen.(*Loader[...]).startBatch.func1") // sleeps for WithWait, also when the batch is full
	stop()
	os.Exit(code)
}

// fleet is two instances of a service.
type fleet struct {
	guards [2]*cacheguard.Guard
	prefix string
	loads  atomic.Int64
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{prefix: rand.Text()}
	for i := range f.guards {
		g, err := cacheguard.New(server.Client(t), cacheguard.Config{Prefix: f.prefix, RedisTimeout: 5 * time.Second})
		must(t, err)
		t.Cleanup(func() { must(t, g.Close()) })
		f.guards[i] = g
	}
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored waits until what was loaded is stored: callers have their answers before.
func (f *fleet) stored(t *testing.T) {
	t.Helper()
	redistest.AwaitNoLease(t, server.Client(t), f.prefix)
}

// newCaches returns a cache for each instance.
func newCaches[K comparable, V any](t *testing.T, f *fleet, cfg cacheguard.CacheConfig[K, V]) (caches [2]*cacheguard.Cache[K, V]) {
	t.Helper()
	for i, g := range f.guards {
		c, err := cacheguard.NewCache(g, cfg)
		must(t, err)
		caches[i] = c
	}
	return caches
}

// loading is for loaders: the first load of a key goes on when the other instance waits for it, or loads itself.
func (f *fleet) loading(ctx context.Context, key string) {
	if f.loads.Add(1) > 1 {
		return
	}
	for ctx.Err() == nil && f.loads.Load() == 1 {
		if in, err := f.guards[0].Inspect(ctx, key); err == nil && in.Waiting == 1 {
			return
		}
	}
}

// share has both instances ask for a key at once, until one load has answered both, and returns their errors. On a busy machine a failure may be forgotten
// before the instance that waits has heard of it. It then loads itself, and another key is tried.
func (f *fleet) share(t *testing.T, ask func(instance, key int) error) (errs [2]error) {
	t.Helper()
	for key := 1; key <= 10; key++ {
		f.loads.Store(0)
		var asked sync.WaitGroup
		for i := range errs {
			asked.Go(func() { errs[i] = ask(i, key) })
		}
		asked.Wait()
		if f.loads.Load() == 1 {
			return errs
		}
	}
	t.Fatal("no load was shared")
	return errs
}
