package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// shelf is a database of many values: the value of key k is "v:k" unless it is said to be missing.
type shelf struct {
	begun   chan []string // the keys of each call
	release chan struct{} // closed by the test: calls may return

	mu      sync.Mutex
	prefix  string
	missing []string
}

func newShelf() *shelf {
	return &shelf{begun: make(chan []string, 1024), release: make(chan struct{}), prefix: "v:"}
}

func openShelf() *shelf {
	s := newShelf()
	close(s.release)
	return s
}

func (s *shelf) load(ctx context.Context, keys []string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make(map[string]string)
	for _, k := range keys {
		if !slices.Contains(s.missing, k) {
			values[k] = s.prefix + k
		}
	}
	s.begun <- slices.Sorted(slices.Values(keys))
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-s.release:
		return values, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// calls are the keys of the calls so far.
func (s *shelf) calls() (calls [][]string) {
	for {
		select {
		case keys := <-s.begun:
			calls = append(calls, keys)
		default:
			return calls
		}
	}
}

func numbered(from, to int) (keys []string) {
	for i := from; i < to; i++ {
		keys = append(keys, fmt.Sprintf("k%03d", i))
	}
	return keys
}

func shelved(prefix string, keys []string) map[string]string {
	values := make(map[string]string)
	for _, k := range keys {
		values[k] = prefix + k
	}
	return values
}

func asyncMany(g *Guard, keys []string, load func(context.Context, []string) (map[string]string, error)) <-chan reply[map[string]string] {
	c := make(chan reply[map[string]string], 1)
	go func() { // owner: the test; ends with the GetMany; joined by receiving
		values, err := getManyOn(context.Background(), g, keys, load)
		c <- reply[map[string]string]{values, err}
	}()
	return c
}

func wantMany(t *testing.T, c <-chan reply[map[string]string], values map[string]string) {
	t.Helper()
	if r := <-c; r.err != nil || !maps.Equal(r.value, values) {
		t.Fatalf("got %v, %v; want %v", r.value, r.err, values)
	}
}

// Two instances ask for keys that overlap while nobody has them.
func promiseMany(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{}).listening()
	left, right := numbered(0, 60), numbered(40, 100)
	one, two := newShelf(), newShelf()
	first := asyncMany(f.guards[0], append(left, left...), one.load)
	expect.Equal(t, "first call", fmt.Sprint(<-one.begun), fmt.Sprint(left))
	second := asyncMany(f.guards[1], right, two.load)
	expect.Equal(t, "second call", fmt.Sprint(<-two.begun), fmt.Sprint(right[20:])) // what the first is not loading
	f.awaitRegistered("k050", 1)
	close(one.release)
	close(two.release)
	wantMany(t, first, shelved("v:", left))
	wantMany(t, second, shelved("v:", right))
	wantMany(t, asyncMany(f.guards[0], numbered(0, 100), one.load), shelved("v:", numbered(0, 100)))
	expect.Equal(t, "more calls", len(one.calls())+len(two.calls()), 0)
}

func TestManyKeysThatNobodyHasAreAFewRequests(t *testing.T) {
	t.Parallel()
	a, server := onServer(t)
	f := newFleet(t, a, 1, Config{}).listening()
	warm(t, f)
	db, keys := openShelf(), numbered(0, 100)
	requests := server.Reads()
	wantMany(t, asyncMany(f.guards[0], keys, db.load), shelved("v:", keys))
	if n := server.Reads() - requests; n > 60 { // about 15; one by one it would be 300
		t.Errorf("%d requests", n)
	}
	expect.Equal(t, "calls", len(db.calls()), 1)
}

// However many keys it has, the reads of others go before those beyond the next window.
func TestTheReadsOfOthersGoBetweenThoseOfAGetMany(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	g, keys := f.guards[0], numbered(0, 6*window)
	other, late := g.keys.ValueKey("other"), make(map[string]bool)
	for _, key := range keys[2*window:] {
		late[g.keys.ValueKey(key)] = true
	}
	first := proxy.On(func(args []string) bool { return slices.Contains(args, g.keys.ValueKey(keys[0])) }, redistest.Hold)
	later := proxy.On(func(args []string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return late[arg] }) && !slices.Contains(args, other)
	}, redistest.Hold)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() { // owner: the test, which waits for left; ends with the GetMany
		defer close(left)
		_, _ = getManyOn(ctx, g, keys, openShelf().load) // the test leaves it
	}()
	<-first.Hit()
	read, err := g.link.Ask(t.Context(), other)
	expect.Must(t, err)
	first.Release()
	expect.Must(t, read.Wait(redistest.Patiently(t)))
	leave()
	later.Release()
	<-left
}

func TestKeysThatAreNotFoundAreAbsentFromTheResultAndRemembered(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	db := openShelf()
	db.missing = []string{"k001"}
	for range 2 {
		wantMany(t, asyncMany(f.guards[0], numbered(0, 3), db.load), shelved("v:", []string{"k000", "k002"}))
		f.stored()
	}
	expect.Equal(t, "calls", len(db.calls()), 1)
	expect.Equal(t, "negative", f.events.count(Negative), 1)
}

func TestGetAndGetManyShareTheirLoads(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	single, db := newSource("single"), newShelf()
	get := async(g, "k000", single.load)
	<-single.begun
	many := asyncMany(g, numbered(0, 2), db.load)
	expect.Equal(t, "call", fmt.Sprint(<-db.begun), "[k001]")
	joined := async(g, "k001", single.load)
	awaitCallers[string](f, 0, "k001", 2)
	close(single.release)
	close(db.release)
	want(t, get, "single")
	want(t, joined, "v:k001")
	wantMany(t, many, map[string]string{"k000": "single", "k001": "v:k001"})
}

func TestTheErrorsOfAGetManyNameTheirKeys(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	mustGet(t, f.guards[0], "k000", returns("cached"))
	broken := errors.New("database is down")
	for name, load := range map[string]func(context.Context, []string) (map[string]string, error){
		"fails":  func(context.Context, []string) (map[string]string, error) { return nil, broken },
		"panics": func(context.Context, []string) (map[string]string, error) { panic(broken) },
	} {
		values, err := GetMany(context.Background(), f.guards[0], []string{"k000", "", "a-" + name, "b-" + name}, load)
		expect.Equal(t, name+": found", fmt.Sprint(values), "map[k000:cached]")
		joined, _ := err.(interface{ Unwrap() []error })
		var failed []string
		for _, e := range joined.Unwrap() {
			var k *KeyError
			if !errors.As(e, &k) || k.Key != "" && !errors.Is(e, broken) {
				t.Errorf("%s: %v", name, e)
			}
			failed = append(failed, k.Key)
		}
		expect.Equal(t, name+": failed", fmt.Sprint(failed), fmt.Sprint([]string{"", "a-" + name, "b-" + name}))
		expect.Equal(t, name+": held", f.stored().held("a-"+name), false)
	}
}

func TestAGetManyWhoseCallerLeavesCancelsItsLoad(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{LeaseTTL: time.Minute})
	db := newShelf()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { // owner: the test; ends with the GetMany; joined by receiving
		_, err := GetMany(ctx, f.guards[0], numbered(0, 3), db.load)
		done <- err
	}()
	<-db.begun
	cancel()
	expect.ErrorIs(t, <-done, context.Canceled)
	redistest.Await(t, "the leases are free", func() bool { return !f.held("k000") && !f.held("k001") && !f.held("k002") })
}

func TestInvalidateStopsABatchFromStoring(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	db := newShelf()
	many := asyncMany(f.guards[0], numbered(0, 3), db.load)
	<-db.begun
	mustInvalidate(t, f.guards[1], "k001")
	db.mu.Lock()
	db.prefix = "new:"
	db.mu.Unlock()
	close(db.release)
	wantMany(t, many, shelved("v:", numbered(0, 3)))
	wantMany(t, asyncMany(f.guards[1], numbered(0, 3), db.load),
		map[string]string{"k000": "v:k000", "k001": "new:k001", "k002": "v:k002"})
}

func TestABatchTakesOneOfMaxLoads(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: 1})
	g := f.guards[0]
	db, parts := openShelf(), openShelf()
	nested := func(ctx context.Context, keys []string) (map[string]string, error) {
		if _, err := GetMany(ctx, g, []string{"part1", "part2"}, parts.load); err != nil {
			return nil, err
		}
		return db.load(ctx, keys)
	}
	for range 3 { // a slot that is not given back would be missed
		wantMany(t, asyncMany(g, numbered(0, 50), nested), shelved("v:", numbered(0, 50)))
		mustInvalidate(t, g, append(numbered(0, 50), "part1")...)
	}
	_, err := GetMany(context.Background(), g, []string{"x"}, func(ctx context.Context, _ []string) (map[string]string, error) {
		return GetMany(ctx, g, []string{"x"}, db.load)
	})
	expect.ErrorIs(t, err, ErrReentrant)
}

func TestStaleKeysOfAGetManyAreReplacedByOneCall(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, brief).knowClock()
	old := openShelf()
	keys := numbered(0, 5)
	wantMany(t, asyncMany(f.guards[0], keys, old.load), shelved("v:", keys))
	for _, k := range keys {
		redistest.Await(t, "the value is stale, by the server's clock too, which the estimate may be ahead of", func() bool {
			raw, _ := f.redis.Get(context.Background(), f.value(k)).Bytes()
			e, err := protocol.DecodeEntry(k, raw)
			return err == nil && f.guards[0].freshness("k", &f.guards[0].ordinary, e) == stale &&
				f.redis.Time(context.Background()).Val().Sub(e.Written) >= e.Fresh
		})
	}
	db := newShelf()
	db.prefix = "new:"
	wantMany(t, asyncMany(f.guards[0], keys, db.load), shelved("v:", keys))
	expect.Equal(t, "background call", fmt.Sprint(<-db.begun), fmt.Sprint(keys))
	close(db.release)
	redistest.Await(t, "the new values are stored", func() bool {
		values, err := GetMany(context.Background(), f.guards[0], keys, db.load)
		return err == nil && maps.Equal(values, shelved("new:", keys))
	})
}

func TestWithoutRedisAGetManyIsOneCall(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	proxy.Refuse(true)
	db := openShelf()
	wantMany(t, asyncMany(f.guards[0], numbered(0, 20), db.load), shelved("v:", numbered(0, 20)))
	expect.Equal(t, "calls", len(db.calls()), 1)
	expect.Equal(t, "bypassed", f.events.count(Bypassed), 20)
}

func TestAGetManyOnAClosedGuardSaysSo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	expect.Equal(t, "Close", f.guards[0].Close(), nil)
	expect.ErrorIs(t, expect.Err(GetMany(context.Background(), f.guards[0], []string{"k"}, openShelf().load)), ErrClosed)
	values, err := GetMany(context.Background(), f.guards[0], nil, openShelf().load)
	if err != nil || values == nil || len(values) != 0 {
		t.Errorf("no keys: %v, %v", values, err)
	}
}
