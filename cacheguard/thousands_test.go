package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// archive is a database of thousands of rows. The value of a key says of which key and version it is.
type archive struct {
	release chan struct{} // closed by the test: loads may return

	mu      sync.Mutex
	version map[string]int
	loads   map[string]int // that have begun, of each key
}

func newArchive() *archive {
	return &archive{release: make(chan struct{}), version: make(map[string]int), loads: make(map[string]int)}
}

// load reads the rows when it begins, as a query does.
func (a *archive) load(ctx context.Context, keys []string) (map[string]string, error) {
	a.mu.Lock()
	rows := make(map[string]string, len(keys))
	for _, key := range keys {
		a.loads[key]++
		rows[key] = fmt.Sprint(key, "@", a.version[key])
	}
	a.mu.Unlock()
	select {
	case <-a.release:
		return rows, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (a *archive) write(keys []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		a.version[key]++
	}
}

func (a *archive) loaded() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.loads)
}

// awaitLoads waits until each key is being loaded, or was.
func (a *archive) awaitLoads(t *testing.T, keys []string) {
	t.Helper()
	redistest.Await(t, "each key is loaded", func() bool {
		loads := a.loaded()
		return !slices.ContainsFunc(keys, func(key string) bool { return loads[key] == 0 })
	})
}

// ask asks for all keys at once.
func (a *archive) ask(ctx context.Context, g *Guard, keys []string) <-chan reply[map[string]string] {
	c := make(chan reply[map[string]string], 1)
	go func() { // owner: the test; ends with the GetMany; joined by receiving
		values, err := GetMany(ctx, g, keys, a.load)
		c <- reply[map[string]string]{values, err}
	}()
	return c
}

// want wants each key to have its own value, as old as one of these versions of those that were written.
func (a *archive) want(t *testing.T, what string, r reply[map[string]string], keys []string, oldest int) {
	t.Helper()
	if r.err != nil || len(r.value) != len(keys) {
		t.Fatalf("%s: %d values of %d keys, %v", what, len(r.value), len(keys), r.err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		value, right := r.value[key], false
		for v := min(oldest, a.version[key]); v <= a.version[key]; v++ {
			right = right || value == fmt.Sprint(key, "@", v)
		}
		if !right {
			t.Fatalf("%s: %s is %q, and has version %d", what, key, value, a.version[key])
		}
	}
}

// inOrders are the keys in their order, in the opposite one, and in any.
func inOrders(keys []string) (orders [][]string) {
	for range 3 {
		orders = append(orders, slices.Clone(keys))
	}
	slices.Reverse(orders[1])
	rand.Shuffle(len(keys), func(i, j int) { orders[2][i], orders[2][j] = orders[2][j], orders[2][i] })
	return orders
}

// oneInTen picks the keys that a test writes.
func oneInTen(keys []string) (some []string) {
	for i := 0; i < len(keys); i += 10 {
		some = append(some, keys[i])
	}
	return some
}

// awaitOnlyValues waits until nothing is loaded, and Redis has no lease, and nothing else of a load but values.
func (f *fleet) awaitOnlyValues(keys []string) {
	f.t.Helper()
	values := make(map[string]bool, len(keys))
	for _, key := range keys {
		values[f.value(key)] = true
	}
	redistest.Await(f.t, "nothing is loaded or left", func() bool {
		for _, g := range f.guards {
			if g.Stats().Loading > 0 {
				return false
			}
		}
		left := slices.DeleteFunc(f.matching("*"), func(key string) bool { return values[key] || strings.Contains(key, ":epoch") })
		return len(left) == 0
	})
}

func TestCallsOfThousandsInAllOrdersLoadEachKeyOnceAndLoseNone(t *testing.T) {
	t.Parallel()
	f, db, ctx := newFleet(t, standalone(t), 3, Config{}).listening(), newArchive(), redistest.Patiently(t)
	all := numbered(0, 2250)
	type call struct {
		keys []string
		got  <-chan reply[map[string]string]
	}
	var calls []call
	for i, g := range f.guards { // there, back, and in any order
		keys := inOrders(all[i*125:][:2000])[i]
		calls = append(calls, call{keys, db.ask(ctx, g, keys)})
	}
	leaving, leave := context.WithCancel(ctx)
	alone := numbered(2250, 2750)
	left := db.ask(leaving, f.guards[0], inOrders(slices.Concat(all[500:2000], alone))[rand.N(3)]) // its guard goes on for others with what they share
	db.awaitLoads(t, append(alone, all...))
	leave()
	expect.ErrorIs(t, (<-left).err, context.Canceled)
	some := oneInTen(all)
	db.write(some)
	mustInvalidate(t, f.guards[1], some...)
	close(db.release)
	for i, c := range calls {
		db.want(t, fmt.Sprint("call ", i), <-c.got, c.keys, 0)
	}
	for i, keys := range [][]string{some, inOrders(all)[2], some} {
		db.want(t, fmt.Sprint("after it, guard ", i), <-db.ask(ctx, f.guards[i], keys), keys, 1)
	}
	loads := db.loaded()
	for _, key := range append(alone, all...) {
		if n := loads[key]; n > 1 && (n > 2 || !slices.Contains(some, key)) {
			t.Errorf("%s was loaded %d times", key, n)
		}
	}
	f.awaitOnlyValues(append(alone, all...)) // what is loaded for others, too, is stored
}

func TestNothingOfThousandsIsLoadedForCallersThatHaveLeft(t *testing.T) {
	t.Parallel()
	f, db := newFleet(t, standalone(t), 3, Config{}).listening(), newArchive()
	keys := numbered(0, 2000)
	loading, end := context.WithCancel(redistest.Patiently(t))
	waiting, leave := context.WithCancel(loading)
	first := db.ask(loading, f.guards[0], keys)
	db.awaitLoads(t, keys)
	var others []<-chan reply[map[string]string]
	for i, order := range inOrders(keys) {
		others = append(others, db.ask(waiting, f.guards[1+i%2], order))
	}
	for _, g := range f.guards[1:] {
		redistest.Await(t, "they wait for each key", func() bool { return g.flights.Count(nil).Callers >= len(keys) })
	}
	leave()
	for _, c := range others {
		expect.ErrorIs(t, (<-c).err, context.Canceled)
	}
	end()
	expect.ErrorIs(t, (<-first).err, context.Canceled)
	f.awaitOnlyValues(nil)
	for key, n := range db.loaded() {
		if n > 1 {
			t.Fatalf("%s was loaded %d times", key, n)
		}
	}
	close(db.release)
	db.want(t, "who comes later", <-db.ask(redistest.Patiently(t), f.guards[1], keys), keys, 0)
}

// Without one node of three, its keys are loaded, also for those who waited for others' loads, and the rest are hits.
func TestCallsOfThousandsHaveEachKeyAlthoughANodeStopsWhileItIsLoaded(t *testing.T) {
	t.Parallel()
	c, rdb := partly(t)
	f := newFleetOn(t, rdb, Config{RedisTimeout: brisk}, rdb, c.Client(t, func(o *redis.ClusterOptions) { o.MaxRedirects = -1 })).listening()
	f.events.quiet = true
	db, ctx := newArchive(), redistest.Patiently(t)
	all := numbered(0, 2000)
	ofStopped := func(key string) bool { return f.guards[0].partOf(key) < breaker.Parts/3 } // masters have equal shares, in order
	type call struct {
		keys []string
		got  <-chan reply[map[string]string]
	}
	var calls []call
	for i, g := range f.guards {
		keys := inOrders(all[i*500:][:1500])[i]
		calls = append(calls, call{keys, db.ask(ctx, g, keys)})
	}
	db.awaitLoads(t, all)
	some := oneInTen(all)
	c.Node(0).Pause()
	resume := sync.OnceFunc(c.Node(0).Resume)
	defer resume()
	db.write(some)
	pending := make(map[string]bool)
	for _, err := range f.guards[0].Invalidate(ctx, some...).(interface{ Unwrap() []error }).Unwrap() {
		var failed *RedisError
		if !errors.As(err, &failed) || !ofStopped(failed.Key) {
			t.Fatal(err)
		}
		pending[failed.Key] = true
	}
	for _, key := range some {
		expect.Equal(t, key+": pending", pending[key], ofStopped(key))
	}
	close(db.release)
	for i, c := range calls {
		db.want(t, fmt.Sprint("call ", i), <-c.got, c.keys, 0)
	}
	askAgain := func(when string) {
		t.Helper()
		for i, g := range f.guards {
			keys := inOrders(all)[1+i]
			db.want(t, fmt.Sprint(when, ", guard ", i), <-db.ask(ctx, g, keys), keys, 1)
		}
	}
	f.stored() // of the other nodes
	askAgain("without the node")
	loads := db.loaded()
	askAgain("without the node, again")
	for key, n := range db.loaded() {
		if !ofStopped(key) && n != loads[key] {
			t.Errorf("%s was loaded again", key)
		}
	}
	resume()
	redistest.Await(t, "all are hits", func() bool {
		loads := db.loaded()
		askAgain("with the node")
		return maps.Equal(loads, db.loaded()) && f.guards[0].Stats().Pending == 0
	})
	f.awaitOnlyValues(all)
}
