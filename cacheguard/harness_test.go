package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// client is a Redis client with the commands that tests look around with.
type client interface {
	Redis
	redis.Cmdable
}

// arena is a kind of Redis to test on.
type arena struct {
	client   func(tb testing.TB) client // a new one, as another process would have
	around   func(tb testing.TB) client // to look around with; nil: client
	patience time.Duration              // RedisTimeout, where a test does not set it; 0: the default
	named    bool                       // values are got through a Cache
	deaf     bool                       // nobody can subscribe
}

func standalone(*testing.T) arena {
	return arena{client: func(tb testing.TB) client { return shared.Client(tb) }}
}

// fleet is some instances of a service: guards with clients of their own and a common prefix.
type fleet struct {
	t      *testing.T
	guards []*Guard
	redis  client // to look around with
	events events
	deaf   bool // nobody can subscribe

	tolerated int64 // failures of Redis that were seen by struck
}

// events counts what the hooks of all guards report.
type events struct {
	quiet    bool // Redis errors are not worth a line
	mu       sync.Mutex
	outcomes map[Outcome]int

	loads, rejected, unstorable, damaged, lost, takeovers, redisErrors atomic.Int64
}

func (e *events) observers(t *testing.T) []Observer {
	counts := map[What]*atomic.Int64{
		EventLoad: &e.loads, EventRejected: &e.rejected, EventUnstorable: &e.unstorable, EventLeaseLost: &e.lost, EventTakeover: &e.takeovers,
		EventDamaged: &e.damaged, EventUnread: &e.damaged, EventAlien: &e.damaged, EventRedisError: &e.redisErrors,
	}
	return []Observer{ObserverFunc(func(_ context.Context, of Event) {
		if of.What == EventGet {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.outcomes[of.Outcome]++
		}
		if of.What == EventRedisError && !e.quiet {
			t.Log(of.Err)
		}
		if n := counts[of.What]; n != nil {
			n.Add(1)
		}
	})}
}

// alsoTell has the Guard tell one more, before it is used.
func alsoTell(g *Guard, o Observer) {
	g.observers.all = append(g.observers.all, observing{Observer: o})
}

// allTold returns when the Observers of the guards have heard what happened beside calls.
func allTold(t *testing.T, guards ...*Guard) {
	t.Helper()
	for _, g := range guards {
		redistest.Await(t, "nobody is still to be told", func() bool {
			g.observers.beside.mu.Lock()
			defer g.observers.beside.mu.Unlock()
			return !g.observers.beside.telling
		})
	}
}

// told are the events, once all are told.
func (f *fleet) told() *events {
	f.t.Helper()
	allTold(f.t, f.guards...)
	return &f.events
}

func (e *events) count(o Outcome) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outcomes[o]
}

// newFleet starts n instances.
func newFleet(t *testing.T, a arena, n int, cfg Config) *fleet {
	t.Helper()
	instances := make([]client, n)
	for i := range instances {
		instances[i] = a.client(t)
	}
	config.SetDefault(&cfg.RedisTimeout, a.patience)
	if a.around == nil {
		a.around = a.client
	}
	f := newFleetOn(t, a.around(t), cfg, instances...)
	f.deaf = a.deaf
	if a.named {
		for _, g := range f.guards {
			throughCaches.Store(g, true)
		}
	}
	return f
}

// newFleetOn starts an instance on each of the clients.
func newFleetOn(t *testing.T, rdb client, cfg Config, instances ...client) *fleet {
	t.Helper()
	f := &fleet{t: t, redis: rdb, events: events{outcomes: make(map[Outcome]int)}}
	cfg.Prefix = "test-" + rand.Text()
	cfg.Observers = append(slices.Clip(cfg.Observers), f.events.observers(t)...)
	for _, instance := range instances {
		f.guards = append(f.guards, newGuard(t, instance, cfg))
	}
	return f
}

// newGuard starts an instance that is as patient as a busy machine needs, unless the test says otherwise.
func newGuard(t *testing.T, rdb Redis, cfg Config) *Guard {
	t.Helper()
	config.SetDefault(&cfg.RedisTimeout, bearing)
	config.SetDefault(&cfg.LeaseTTL, bearing)
	config.SetDefault(&cfg.LoadTimeout, time.Hour)
	if cfg.TTL == 0 {
		cfg.TTL = time.Hour
		config.SetDefault(&cfg.NegativeTTL, time.Hour)
	}
	mayBeSlow := cfg.HedgeAfter != 0
	config.SetDefault(&cfg.HedgeAfter, off)
	if cfg.Local.on() {
		config.SetDefault(&cfg.Local.MaxLag, bearing) // where a test is not about it, no echo may be late
	}
	cfg.Limiter = limiterOf(t, rdb, cfg)
	g, err := New(rdb, cfg)
	expect.Must(t, err)
	if !mayBeSlow { // as Redis is on a busy machine: then leases are taken before there is a slot
		g.breakers.Watch(nil, nil)
	}
	t.Cleanup(func() { _ = g.Close() }) // always nil
	return g
}

// listening makes the fleet's inboxes subscribe, and waits for it, if they can.
func (f *fleet) listening() *fleet {
	f.t.Helper()
	if f.deaf {
		return f
	}
	for _, g := range f.guards {
		g.inbox.Start()
		redistest.Await(f.t, "an inbox is subscribed", func() bool { return g.inbox.Address() != "" })
		for i := range 50*min(g.breakers.Len()-1, 1) + 1 {
			redistest.Await(f.t, "an echo is back", func() bool { return g.local == nil || g.local.IsInformed(fmt.Sprint("k", i)) })
		}
	}
	return f
}

// only matches one flight.
func only(key flightKey) func(flightKey) bool {
	return func(k flightKey) bool { return k == key }
}

// awaitCallers waits until n callers wait for guard i's rebuild of a key.
func awaitCallers[V any](f *fleet, i int, key string, n int) {
	f.t.Helper()
	redistest.Await(f.t, fmt.Sprintf("%d callers wait at guard %d", n, i), func() bool {
		return f.guards[i].flights.Count(only(flightKey{key: keyOn(f.guards[i], key), kind: kindOn(f.guards[i]), shape: protocol.ShapeOf[V]{}, mode: filled})).Callers == n
	})
}

// awaitRegistered waits until n instances are registered to be woken by the holder of the key's lease.
func (f *fleet) awaitRegistered(key string, n int) {
	f.t.Helper()
	if f.deaf {
		redistest.Await(f.t, "an instance polls", func() bool { return f.redis.HExists(context.Background(), f.lease(key), "polled").Val() })
		return
	}
	f.awaitRegisteredAt(f.lease(key), n)
}

func (f *fleet) awaitRegisteredAt(lease string, n int) {
	f.t.Helper()
	redistest.Await(f.t, fmt.Sprintf("%d instances are registered", n), func() bool {
		fields, err := f.redis.HKeys(context.Background(), lease).Result()
		registered := 0
		for _, field := range fields {
			if len(field) > 6 && field[:6] == "inbox:" {
				registered++
			}
		}
		return err == nil && registered == n
	})
}

func (f *fleet) value(key string) string { return f.guards[0].keys.ValueKey(keyOn(f.guards[0], key)) }
func (f *fleet) lease(key string) string { return protocol.LeaseKey(f.value(key)) }

// exists reports whether Redis has the keys.
func (f *fleet) exists(key string) bool {
	f.t.Helper()
	n, err := f.redis.Exists(context.Background(), key).Result()
	expect.Must(f.t, err)
	return n == 1
}

// matching are the keys of the fleet, on whatever node, after whose Prefix the pattern fits.
func (f *fleet) matching(pattern string) (found []string) {
	f.t.Helper()
	ask := func(ctx context.Context, node *redis.Client) error {
		keys, err := node.Keys(ctx, f.guards[0].cfg.Prefix+pattern).Result()
		found = append(found, keys...)
		return err
	}
	var err error
	switch rdb := f.redis.(type) {
	case *redis.ClusterClient:
		one := make(chan struct{}, 1)
		err = rdb.ForEachMaster(context.Background(), func(ctx context.Context, node *redis.Client) error {
			one <- struct{}{}
			defer func() { <-one }()
			return ask(ctx, node)
		})
	case *redis.Client:
		err = ask(context.Background(), rdb)
	}
	expect.Must(f.t, err)
	return found
}

// stored waits until what the instances have loaded is stored, or refused: callers have their values earlier.
func (f *fleet) stored() *fleet {
	f.t.Helper()
	redistest.Await(f.t, "nothing is being stored", func() bool {
		for _, g := range f.guards {
			if g.flights.Count(nil).Published > 0 {
				return false
			}
		}
		return true
	})
	return f
}

// source is a database with one value, whose loads a test holds up.
type source struct {
	loads   atomic.Int64
	begun   chan struct{} // one for each load
	release chan struct{} // closed or sent to by the test: a load may return
	value   atomic.Value
}

func newSource(value string) *source {
	s := &source{begun: make(chan struct{}, 1024), release: make(chan struct{}, 1024)}
	s.value.Store(value)
	return s
}

// load reads the value when it begins, as a query does, and returns it when the test says so.
func (s *source) load(ctx context.Context) (string, error) {
	value := s.value.Load().(string)
	s.loads.Add(1)
	s.begun <- struct{}{}
	select {
	case <-s.release:
		return value, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// reply is what a Get returned.
type reply[V any] struct {
	value V
	err   error
}

// get starts a Get.
func async[V any](g *Guard, key string, load func(context.Context) (V, error)) <-chan reply[V] {
	return asyncCtx(context.Background(), g, key, load)
}

func asyncCtx[V any](ctx context.Context, g *Guard, key string, load func(context.Context) (V, error)) <-chan reply[V] {
	c := make(chan reply[V], 1)
	go func() { // owner: the test; ends with the Get; joined by receiving
		v, err := getOn(ctx, g, key, load)
		c <- reply[V]{v, err}
	}()
	return c
}

func want[V comparable](t *testing.T, c <-chan reply[V], value V) {
	t.Helper()
	if r := <-c; r.err != nil || r.value != value {
		t.Fatalf("got %v, %v; want %v", r.value, r.err, value)
	}
}

// mustGet makes a Get, and returns when the value is stored, if this Guard loaded it.
func mustGet[V any](t *testing.T, g *Guard, key string, load func(context.Context) (V, error)) V {
	t.Helper()
	v, err := getOn(context.Background(), g, key, load)
	expect.Must(t, err)
	if stored := g.flights.Ending(flightKey{key: keyOn(g, key), kind: kindOn(g), shape: protocol.ShapeOf[V]{}, mode: filled}); stored != nil {
		<-stored
	}
	return v
}

func mustInvalidate(t *testing.T, g *Guard, keys ...string) {
	t.Helper()
	expect.Must(t, g.Invalidate(context.Background(), keysOn(g, keys)...))
}

// expectRedisError wants the *RedisError of an operation, and of a key; "" is any.
func expectRedisError(t *testing.T, err error, op, key string) {
	t.Helper()
	failed := (*RedisError)(nil)
	if !errors.As(err, &failed) || op != "" && failed.Op != op || key != "" && failed.Key != key || failed.Err == nil {
		t.Errorf("error %v, want one of Redis at %q of %q", err, op, key)
	}
}

// returns is a loader that returns at once.
func returns[V any](v V) func(context.Context) (V, error) {
	return func(context.Context) (V, error) { return v, nil }
}

// unwanted is a loader that must not run.
func unwanted[V any](t *testing.T) func(context.Context) (V, error) {
	return func(context.Context) (v V, err error) {
		t.Error("loaded, but the cache has the value")
		return v, errors.New("unwanted load")
	}
}

// get is Get with the outcome.
func get[V any](ctx context.Context, g *Guard, key string, load func(context.Context) (V, error)) (V, Outcome, error) {
	spec := specOf[V](&g.ordinary)
	spec.loader = load
	return ask(ctx, g, key, &spec, nil)
}

// made is a value as a load has made it.
func (r *rebuild) made(v *string) loaded {
	out := loaded{value: v, ttl: unset}
	r.encode(&out)
	return out
}
