package cacheguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// thing is what the tests' Caches are of.
type thing struct {
	ID   int
	Name string
}

// things is a source of things.
type things struct {
	loads  atomic.Int64
	absent map[int]bool
}

func (s *things) load(_ context.Context, id int) (thing, error) {
	s.loads.Add(1)
	if s.absent[id] {
		return thing{}, fmt.Errorf("thing %d: %w", id, sql.ErrNoRows)
	}
	return thing{ID: id, Name: fmt.Sprint("n", id)}, nil
}

// newCaches makes a Cache on each instance of the fleet.
func newCaches[K comparable, V any](t *testing.T, f *fleet, cfg CacheConfig[K, V]) []*Cache[K, V] {
	t.Helper()
	all := make([]*Cache[K, V], len(f.guards))
	for i, g := range f.guards {
		c, err := NewCache(g, cfg)
		expect.Must(t, err)
		all[i] = c
	}
	return all
}

type (
	productID int64
	small     uint8
	slug      string
	colour    int
	pair      struct{ a, b int }
	spoken    struct{ text string }
	wrapped   struct {
		netip.Addr
		_ int
	}
)

func (colour) String() string   { return "a colour" }
func (s spoken) String() string { return s.text }

func keyOf[K comparable](t *testing.T, k K, key func(K) string) string {
	t.Helper()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	c, err := NewCache(g, CacheConfig[K, int]{Name: "x", Key: key, Load: func(context.Context, K) (int, error) { return 0, nil }})
	expect.Must(t, err)
	return c.Key(k)
}

func TestIntegersStringsAndTextsAreKeysWithoutAKeyFunction(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{keyOf(t, int64(-42), nil), "x:-42"},
		{keyOf(t, 42, nil), "x:42"},
		{keyOf(t, uint64(1<<63), nil), "x:9223372036854775808"},
		{keyOf(t, productID(7), nil), "x:7"},
		{keyOf(t, small(255), nil), "x:255"},
		{keyOf(t, "a:b}{", nil), "x:a:b}{"},
		{keyOf(t, slug("shoe"), nil), "x:shoe"},
		{keyOf(t, colour(3), nil), "x:3"}, // its String says the same of all
		{keyOf(t, netip.MustParseAddr("127.0.0.1"), nil), "x:127.0.0.1"},
		{keyOf(t, spoken{"said"}, nil), "x:said"},
		{keyOf(t, pair{1, 2}, func(p pair) string { return fmt.Sprint(p.a, "/", p.b) }), "x:1/2"},
		{keyOf(t, "", nil), ""},
		{keyOf(t, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), nil), ""}, // MarshalText fails
		{keyOf(t, strings.Repeat("k", 300), nil), "x:" + strings.Repeat("k", 300)},
	} {
		expect.Equal(t, "key", c[0], c[1])
	}
}

func expectField[K comparable, V any](t *testing.T, g *Guard, cfg CacheConfig[K, V], field string) {
	t.Helper()
	_, err := NewCache(g, cfg)
	expect.Says(t, err, "CacheConfig."+field+": ")
	expect.Equal(t, "begins with the package", strings.HasPrefix(fmt.Sprint(err), "cacheguard: "), true)
}

func TestNewCacheNamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	db := new(things)
	for field, change := range map[string]func(*CacheConfig[int, thing]){
		"Name": func(c *CacheConfig[int, thing]) { c.Name = "" }, "Name: \"a": func(c *CacheConfig[int, thing]) { c.Name = "a:b" },
		"Load": func(c *CacheConfig[int, thing]) { c.Load = nil }, "TTL": func(c *CacheConfig[int, thing]) { c.TTL = -2 },
		"StaleFor":     func(c *CacheConfig[int, thing]) { c.StaleFor = 5 },
		"NegativeTTL":  func(c *CacheConfig[int, thing]) { c.NegativeTTL = -2 },
		"Jitter":       func(c *CacheConfig[int, thing]) { c.Jitter = 1.5 },
		"EarlyRefresh": func(c *CacheConfig[int, thing]) { c.EarlyRefresh = 101 },
		"MaxLoads":     func(c *CacheConfig[int, thing]) { c.MaxLoads = -2 },
		"Patience":     func(c *CacheConfig[int, thing]) { c.Patience = 5 },
		"Errors":       func(c *CacheConfig[int, thing]) { c.Errors = map[string]error{"gone": nil} },
	} {
		cfg := CacheConfig[int, thing]{Name: "thing", Load: db.load}
		change(&cfg)
		expect.Says(t, expect.Err(NewCache(g, cfg)), "cacheguard: CacheConfig."+field)
	}
	load := func(v thing) (thing, error) { return v, nil }
	expectField(t, g, CacheConfig[pair, thing]{Name: "p", Load: func(context.Context, pair) (thing, error) { return load(thing{}) }}, "Key")
	expectField(t, g, CacheConfig[wrapped, thing]{Name: "p", Load: func(context.Context, wrapped) (thing, error) { return load(thing{}) }}, "Key")
	expectField(t, g, CacheConfig[any, thing]{Name: "p", Load: func(context.Context, any) (thing, error) { return load(thing{}) }}, "Key")
	expectField(t, g, CacheConfig[*int, thing]{Name: "p", Load: func(context.Context, *int) (thing, error) { return load(thing{}) }}, "Key")
	expectField(t, g, CacheConfig[float64, thing]{Name: "p", Load: func(context.Context, float64) (thing, error) { return load(thing{}) }}, "Key")
}

func TestANameBelongsToOneKindOfThings(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	g, db := f.guards[0], new(things)
	cfg := CacheConfig[int, thing]{Name: "thing", Load: db.load, MaxLoads: 2}
	for range 2 {
		expect.ErrorIs(t, expect.Err(NewCache(g, cfg)))
	}
	expectField(t, g, CacheConfig[string, thing]{
		Name: "thing", Load: func(context.Context, string) (thing, error) { return thing{}, nil }, MaxLoads: 2}, "Name")
	expectField(t, g, CacheConfig[int, string]{
		Name: "thing", Load: func(context.Context, int) (string, error) { return "", nil }, MaxLoads: 2}, "Name")
	cfg.MaxLoads = 3
	expectField(t, g, cfg, "MaxLoads")
	expect.ErrorIs(t, expect.Err(NewCache(f.guards[1], cfg)))
}

func TestACacheThatIsNilReturnsErrors(t *testing.T) {
	t.Parallel()
	expect.ErrorIs(t, expect.Err(NewCache[int, int](nil, CacheConfig[int, int]{})), errNilGuard)
	var c *Cache[int, int]
	ctx := context.Background()
	_, err := c.Get(ctx, 1)
	expect.ErrorIs(t, err, errNilCache)
	_, err = c.GetMany(ctx, []int{1})
	expect.ErrorIs(t, err, errNilCache)
	expect.ErrorIs(t, c.Invalidate(ctx, 1), errNilCache)
	expect.ErrorIs(t, c.Update(ctx, 1, nil), errNilCache)
	expect.ErrorIs(t, c.Put(ctx, 1, nil), errNilCache)
	expect.Equal(t, "key", c.Key(1), "")
	expect.Equal(t, "stats", c.Stats(), Stats{})

	f := newFleet(t, standalone(t), 1, Config{})
	c = newCaches(t, f, CacheConfig[int, int]{Name: "x", Load: func(context.Context, int) (int, error) { return 0, nil }})[0]
	if c.Update(ctx, 1, nil) == nil || c.Put(ctx, 1, nil) == nil {
		t.Error("a nil write is accepted")
	}
}

func TestACacheLoadsOnceUnderAKeyOfTheGuard(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	db := new(things)
	caches := newCaches(t, f, CacheConfig[int, thing]{Name: "thing", Load: db.load})
	for range 3 {
		for _, c := range caches {
			v, err := c.Get(context.Background(), 42)
			expect.Equal(t, "value", fmt.Sprint(v, err), "{42 n42} <nil>")
			f.stored()
		}
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
	expect.Equal(t, "stored at Prefix:{thing:42}", f.exists(f.guards[0].cfg.Prefix+":{thing:42}"), true)
	expect.Equal(t, "Invalidate", caches[1].Invalidate(context.Background(), 41, 42), nil)
	expect.Equal(t, "stored", f.exists(f.value("thing:42")), false)
}

func TestAnEmptyKeyIsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	c := newCaches(t, f, CacheConfig[string, string]{
		Name: "s", Load: func(_ context.Context, k string) (string, error) { return "v:" + k, nil }})[0]
	ctx := context.Background()
	_, err := c.Get(ctx, "")
	expect.ErrorIs(t, err, errEmptyKey)
	expect.ErrorIs(t, c.Invalidate(ctx, "a", ""), errEmptyKey)
	expect.ErrorIs(t, c.Update(ctx, "", func(context.Context) error { return nil }), errEmptyKey)
	expect.ErrorIs(t, c.Put(ctx, "", returns("v")), errEmptyKey)
	values, err := c.GetMany(ctx, []string{"a", "", "b"})
	expect.ErrorIs(t, err, errEmptyKey)
	expect.Equal(t, "the others", fmt.Sprint(values), "map[a:v:a b:v:b]")
}

func TestAbsenceIsNotFoundItselfEverywhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	db := &things{absent: map[int]bool{7: true}}
	caches := newCaches(t, f, CacheConfig[int, thing]{Name: "thing", Load: db.load, NotFound: sql.ErrNoRows})
	for _, c := range caches {
		for range 2 {
			_, err := c.Get(context.Background(), 7)
			if err != sql.ErrNoRows { //nolint:errorlint // this very error
				t.Errorf("%v, want %v", err, sql.ErrNoRows)
			}
			f.stored()
		}
		values, err := c.GetMany(context.Background(), []int{7, 8})
		expect.Equal(t, "GetMany", fmt.Sprint(values, err), "map[8:{8 n8}] <nil>")
		f.stored()
	}
	expect.Equal(t, "loads", db.loads.Load(), 2)
	expect.Equal(t, "negative", f.events.count(Negative) >= 3, true)
}

var errGone = errors.New("gone")

func TestSentinelsTravelByName(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 3, Config{}).listening()
	db := newSource("")
	cfg := CacheConfig[int, string]{
		Name: "thing", Errors: map[string]error{"gone": errGone, "late": context.DeadlineExceeded},
		Load: func(ctx context.Context, id int) (string, error) {
			_, err := db.load(ctx)
			return "", errors.Join(err, fmt.Errorf("\x00thing %d: %w", id, errGone))
		},
	}
	caches := newCaches(t, f, cfg)
	f.guards[2].kinds = kinds{}
	cfg.Errors = nil
	strange := newCaches(t, &fleet{t: t, guards: f.guards[2:]}, cfg)[0]
	replies := make([]chan error, 3)
	get := func(i int, c *Cache[int, string]) {
		replies[i] = make(chan error, 1)
		go func() {
			_, err := c.Get(context.Background(), 1)
			replies[i] <- err
		}()
	}
	get(0, caches[0])
	<-db.begun
	get(1, caches[1])
	get(2, strange)
	f.awaitRegistered("thing:1", 2)
	close(db.release)
	for i, reply := range replies {
		err := <-reply
		var remote *LoadError
		expect.Equal(t, fmt.Sprint(i, " is the sentinel"), errors.Is(err, errGone), i < 2)
		expect.Equal(t, fmt.Sprint(i, " is another sentinel"), errors.Is(err, context.DeadlineExceeded), false)
		expect.Equal(t, fmt.Sprint(i, " is a LoadError"), errors.As(err, &remote), i > 0)
		if remote != nil {
			expect.Equal(t, "text", remote.Message, "\x00thing 1: gone")
		}
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
	redistest.Await(t, "the failure is remembered", func() bool {
		_, err := caches[0].Get(context.Background(), 1)
		expect.ErrorIs(t, err, errGone)
		return prolongFailure(f.redis, f.lease("thing:1"))
	})
	before := db.loads.Load()
	_, err := caches[1].Get(context.Background(), 1) // a moment later, from the lease
	expect.ErrorIs(t, err, errGone)
	expect.Equal(t, "loads", db.loads.Load(), before)
}

func TestGetManyLoadsInOneCallWhatIsMissing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	db := new(things)
	var calls [][]int
	c := newCaches(t, f, CacheConfig[int, thing]{
		Name: "thing", Load: db.load,
		LoadMany: func(_ context.Context, ids []int) (map[int]thing, error) {
			calls = append(calls, ids)
			return map[int]thing{2: {ID: 2}, 4: {ID: 4}, 99: {ID: 99}}, nil
		},
	})[0]
	_, _ = c.Get(context.Background(), 1)
	f.stored()
	values, err := c.GetMany(context.Background(), []int{1, 2, 2, 3, 4, 1})
	expect.Equal(t, "values", fmt.Sprint(values, err), "map[1:{1 n1} 2:{2 } 4:{4 }] <nil>")
	expect.Equal(t, "calls", len(calls), 1)
	expect.Equal(t, "asked for", len(calls[0]), 3)
	f.stored()
	expect.Equal(t, "what nobody asked for is stored", f.exists(f.value("thing:99")), false)
	expect.Equal(t, "absence is stored", f.exists(f.value("thing:3")), true)
}

func TestGetManyWithoutLoadManyLoadsAtOnceUnderTheLimit(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: 8})
	var running, most atomic.Int64
	begun, release := make(chan struct{}, 16), make(chan struct{})
	c := newCaches(t, f, CacheConfig[int, int]{
		Name: "n", MaxLoads: 3,
		Load: func(_ context.Context, id int) (int, error) {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			begun <- struct{}{}
			<-release
			if id == 5 {
				return 0, errGone
			}
			return id * id, nil
		},
	})[0]
	done := make(chan string, 1)
	go func() {
		values, err := c.GetMany(context.Background(), []int{1, 2, 3, 4, 5, 6})
		var failed *KeyError
		done <- fmt.Sprint(values, errors.Is(err, errGone), errors.As(err, &failed) && failed.Key == "n:5")
	}()
	for range 3 {
		<-begun
	}
	expect.Equal(t, "stats", c.Stats().Loading, 3)
	close(release)
	expect.Equal(t, "reply", <-done, "map[1:1 2:4 3:9 4:16 6:36] true true")
	expect.Equal(t, "at once", most.Load(), 3)
	redistest.Await(t, "nothing is loading", func() bool { s := c.Stats(); return s.Loading == 0 && s.Pending == 0 })
}

func TestAClosedGuardHasNoNewCache(t *testing.T) {
	t.Parallel()
	g := newGuard(t, shared.Client(t), Config{})
	expect.Equal(t, "close", g.Close(), nil)
	_, err := NewCache(g, CacheConfig[int, int]{Name: "late", Load: func(context.Context, int) (int, error) { return 1, nil }})
	expect.ErrorIs(t, err, ErrClosed)
}
