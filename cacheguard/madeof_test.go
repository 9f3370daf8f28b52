package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// layers are Caches on a cluster of which each is made of the one before, and a writer whose requests to one node can be held.
type layers struct {
	t      *testing.T
	f      *fleet // the writer, and one who reads
	names  []string
	caches [2][]*Cache[int, string] // of the writer, and of the one who reads
	ids    []int                    // of each layer, on nodes of their own
	db     atomic.Pointer[string]
	proxy  *redistest.Proxy
	slow   func(ctx context.Context) // each load of the first layer, after it has read; nil: it is quick
}

// newLayers has the writer's way to the node of the first layer lead through a proxy.
func newLayers(t *testing.T, declared bool, cfg Config, names ...string) *layers {
	t.Helper()
	l := &layers{t: t, names: names}
	l.write("old")
	cluster := redistest.SharedCluster(t)
	var through atomic.Pointer[string] // the node
	writer := cluster.Client(t, func(o *redis.ClusterOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if node := through.Load(); node != nil && addr == *node {
				addr = l.proxy.Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	rdb := cluster.Client(t)
	l.f = newFleetOn(t, rdb, cfg, writer, rdb)
	for i, name := range names {
		l.ids = append(l.ids, 0)
		for l.node(i) != cluster.Addrs()[i%3] {
			l.ids[i]++
		}
		for who, g := range l.f.guards {
			cfg := CacheConfig[int, string]{Name: name, Tags: func(int, string) []string { return []string{name} }}
			if declared && i > 0 {
				cfg.MadeOf = names[i-1 : i]
			}
			cfg.Load = func(ctx context.Context, _ int) (string, error) {
				if i == 0 {
					v := *l.db.Load()
					if l.slow != nil {
						l.slow(ctx)
					}
					return v, nil
				}
				below, err := l.caches[who][i-1].Get(ctx, l.ids[i-1])
				return below + "'", err
			}
			l.caches[who] = append(l.caches[who], must(NewCache(g, cfg)))
		}
	}
	node := l.node(0)
	l.proxy = redistest.StartProxy(t, node)
	through.Store(&node)
	return l
}

func (l *layers) write(value string) { l.db.Store(&value) }

func (l *layers) key(i int) string { return fmt.Sprint(l.names[i], ":", l.ids[i]) }

// node has the key of a layer.
func (l *layers) node(i int) string {
	rdb := l.f.redis.(*redis.ClusterClient)
	node, err := rdb.MasterForKey(context.Background(), l.f.value(l.key(i)))
	expect.Equal(l.t, "error", err, nil)
	return node.Options().Addr
}

// read is what one who reads gets of the topmost layer.
func (l *layers) read(who int) string {
	l.t.Helper()
	top := len(l.names) - 1
	v, err := l.caches[who][top].Get(l.t.Context(), l.ids[top])
	expect.Equal(l.t, "error", err, nil)
	return strings.TrimRight(v, "'")
}

func ofScripts(args []string) bool { return strings.HasPrefix(args[0], "eval") }

// holds holds the writer's scripts on the node.
func (l *layers) holds() *redistest.Rule { return l.proxy.On(ofScripts, redistest.Hold) }

// Whatever is held back: nobody has a view of the old product when the call has returned.
func TestWhatIsMadeOfWhatACallEndsEndsWhenThatHasEnded(t *testing.T) {
	t.Parallel()
	invalidate := func(_ *testing.T, l *layers) func(context.Context) error {
		return func(ctx context.Context) error { return l.f.guards[0].Invalidate(ctx, l.key(1), l.key(0)) }
	}
	intend := func(c func(l *layers) Changes) func(*testing.T, *layers) func(context.Context) error {
		return func(t *testing.T, l *layers) func(context.Context) error {
			in, err := l.f.guards[0].Intend(t.Context(), c(l))
			expect.Equal(t, "error", err, nil)
			return in.Done
		}
	}
	for name, c := range map[string]struct {
		learned bool
		begin   func(t *testing.T, l *layers) (end func(context.Context) error) // before the commit
	}{
		"Invalidate":          {false, invalidate},
		"Invalidate, learned": {true, invalidate},
		"Done of keys":        {false, intend(func(l *layers) Changes { return Changes{Keys: []string{l.key(1), l.key(0)}} })},
		"Done of a key and the tag of what is made of it": {false, intend(func(l *layers) Changes {
			return Changes{Keys: []string{l.key(0)}, Tags: []string{"view"}}
		})},
		"Done of a tag and the key of what is made of it": {false, intend(func(l *layers) Changes {
			return Changes{Keys: []string{l.key(1)}, Tags: []string{"product"}}
		})},
		"tags": {false, func(_ *testing.T, l *layers) func(context.Context) error {
			return func(ctx context.Context) error { return l.f.guards[0].InvalidateTags(ctx, l.names...) }
		}},
		"everything": {false, func(_ *testing.T, l *layers) func(context.Context) error { return l.f.guards[0].InvalidateAll }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLayers(t, !c.learned, Config{}, "product", "view")
			if c.learned {
				l.read(0)
			}
			expect.Equal(t, "the view", l.read(1), "old")
			l.f.stored()
			end := c.begin(t, l)
			l.write("new")
			hold := l.holds()
			returned := make(chan error, 1)
			go func() { returned <- end(context.Background()) }() // owner: the test; joined below
			<-hold.Hit()
			redistest.Later() // what is sent beside it has arrived
			expect.Equal(t, "the view meanwhile", l.read(1), "old")
			l.f.stored()
			hold.Remove()
			expect.Equal(t, "the call's error", <-returned, nil)
			expect.Equal(t, "the view", l.read(1), "new")
			expect.Equal(t, "the writer's view", l.read(0), "new")
		})
	}
}

// What is made of a value whose end is pending ends again when that has reached Redis, by all of its levels.
func TestWhatIsMadeOfWhatIsPendingEndsAgainAfterIt(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, l *layers) (end func(context.Context) error){
		"Invalidate": func(_ *testing.T, l *layers) func(context.Context) error {
			return func(ctx context.Context) error { return l.f.guards[0].Invalidate(ctx, l.key(2), l.key(1), l.key(0)) }
		},
		"Done": func(t *testing.T, l *layers) func(context.Context) error {
			in, err := l.f.guards[0].Intend(t.Context(), Changes{Keys: []string{l.key(0), l.key(1), l.key(2)}})
			expect.Equal(t, "error", err, nil)
			return in.Done
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLayers(t, true, Config{}, "product", "view", "page")
			expect.Equal(t, "the page", l.read(1), "old")
			l.f.stored()
			end := begin(t, l)
			l.write("new")
			refused := l.proxy.On(ofScripts, redistest.ReplyError("ERR not now"))
			expect.Equal(t, "the call has failed", end(context.Background()) != nil, true)
			expect.Equal(t, "the page meanwhile", l.read(1), "old")
			l.f.stored()
			refused.Remove()
			redistest.Await(t, "nothing is pending", func() bool { return l.f.guards[0].Stats().Pending == 0 })
			expect.Equal(t, "the page", l.read(1), "new")
			expect.Equal(t, "the writer's page", l.read(0), "new")
		})
	}
}

// An update has no stages: as long as its end is held, nobody stores what a load has read before the commit, and no call that began after that gets it.
func TestWhatIsMadeOfWhatIsUpdatedIsMadeOfNothingOld(t *testing.T) {
	t.Parallel()
	for name, update := range map[string]func(ctx context.Context, l *layers, write func(context.Context) error) error{
		"Update, with Also": func(ctx context.Context, l *layers, write func(context.Context) error) error {
			return l.f.guards[0].Update(ctx, l.key(0), func(ctx context.Context) error {
				return errors.Join(Also(ctx, Changes{Keys: []string{l.key(1)}}), write(ctx))
			})
		},
		"UpdateMany": func(ctx context.Context, l *layers, write func(context.Context) error) error {
			return l.f.guards[0].UpdateMany(ctx, []string{l.key(0), l.key(1)}, write)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLayers(t, true, Config{WaitTimeout: time.Millisecond}, "product", "view")
			announced, committed, reading, release := make(chan struct{}), make(chan *redistest.Rule, 1), make(chan struct{}, 10), make(chan struct{})
			l.slow = func(context.Context) { reading <- struct{}{}; <-release }
			returned := make(chan error, 1)
			go func() { // owner: the test; joined below
				returned <- update(context.Background(), l, func(context.Context) error {
					close(announced)
					<-reading
					l.write("new")
					committed <- l.holds()
					return nil
				})
			}()
			<-announced
			read := [2]chan string{make(chan string, 1), make(chan string, 1)}
			get := func(i int) { // owner: the test; joined below
				v, _ := l.caches[1][i].Get(context.Background(), l.ids[i]) // its value tells
				read[i] <- strings.TrimRight(v, "'")
			}
			go get(0)
			hold := <-committed
			<-hold.Hit()
			redistest.Later() // what is sent beside it has arrived
			go get(1)
			redistest.Await(t, "both wait for the product, and one for the view", func() bool { return l.f.guards[1].Stats().Waiting == 3 })
			close(release)
			expect.Equal(t, "the product that was read before", <-read[0], "old")
			expect.Equal(t, "the view", <-read[1], "new")
			l.f.stored()
			hold.Remove()
			expect.Equal(t, "the call's error", <-returned, nil)
			expect.Equal(t, "the view", l.read(1), "new")
		})
	}
}

func TestLevelsOfWhatIsMadeOfOthers(t *testing.T) {
	t.Parallel()
	var m made
	expect.Equal(t, "nothing is known", m.levels.Load(), nil)
	expect.Equal(t, "itself", m.declare("a", []string{"a"}), "a")
	expect.Equal(t, "refused", m.declare("view", []string{"product", "price"}), "")
	expect.Equal(t, "refused", m.declare("page", []string{"view"}), "")
	expect.Equal(t, "by way of others", m.declare("product", []string{"page"}), "page")
	expect.Equal(t, "levels", fmt.Sprint(*m.levels.Load()), "{map[page:2 price:0 product:0 view:1] 2}")
	expect.Equal(t, "undeclared, though declared", m.learn("page", "view"), false)
	expect.Equal(t, "undeclared", m.learn("price", "currency"), true)
	expect.Equal(t, "a circle", m.learn("product", "view"), true)
	expect.Equal(t, "levels", fmt.Sprint(*m.levels.Load()), "{map[currency:0 page:3 price:1 product:2 view:2] 3}")
	expect.Equal(t, "undeclared", m.undeclared(), "price of currency, product of view")
}

func TestAGuardSaysWhatNoMadeOfNames(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	f := newFleet(t, standalone(t), 1, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	g := f.guards[0]
	product := must(NewCache(g, CacheConfig[int, string]{Name: "product", Load: func(context.Context, int) (string, error) { return "v", nil }}))
	view := must(NewCache(g, CacheConfig[int, string]{Name: "view", Load: func(ctx context.Context, k int) (string, error) { return product.Get(ctx, k) }}))
	for k := range 3 {
		_, err := view.Get(t.Context(), k)
		expect.Equal(t, "error", err, nil)
	}
	expect.Equal(t, "Stats", g.Stats().Undeclared, "view of product")
	expect.Equal(t, "lines", strings.Count(log.String(), "kind=view made_of=product"), 1)
	must(NewCache(g, CacheConfig[int, string]{Name: "view", MadeOf: []string{"product"}, Load: view.cfg.Load}))
	expect.Equal(t, "Stats", g.Stats().Undeclared, "")
	for _, of := range []string{"", "product", "view"} {
		_, err := NewCache(g, CacheConfig[int, string]{Name: "product", MadeOf: []string{of}, Load: product.cfg.Load})
		expect.Equal(t, "refused: "+of, err != nil && strings.Contains(err.Error(), "CacheConfig.MadeOf: "), true)
	}
}

func TestAGuardLearnsFromWhateverMakesAValueOfAnother(t *testing.T) {
	t.Parallel()
	for name, makes := range map[string]func(ctx context.Context, t *testing.T, g *Guard, product *Cache[int, string]) string{
		"a loader without a Cache, as of a page": func(_ context.Context, t *testing.T, g *Guard, product *Cache[int, string]) string {
			mustGet(t, g, "page:1", func(ctx context.Context) (string, error) { return product.Get(ctx, 1) })
			return ""
		},
		"LoadMany, with GetMany": func(ctx context.Context, t *testing.T, g *Guard, product *Cache[int, string]) string {
			views := must(NewCache(g, CacheConfig[int, string]{
				Name: "view", Load: func(context.Context, int) (string, error) { return "", errors.New("not asked") },
				LoadMany: func(ctx context.Context, ks []int) (map[int]string, error) { return product.GetMany(ctx, ks) },
			}))
			_, err := views.GetMany(ctx, []int{1, 2})
			expect.Equal(t, "error", err, nil)
			return "view"
		},
		"Put": func(ctx context.Context, t *testing.T, g *Guard, product *Cache[int, string]) string {
			view := must(NewCache(g, CacheConfig[int, string]{Name: "view", Load: func(context.Context, int) (string, error) { return "v", nil }}))
			err := view.Put(ctx, 1, func(ctx context.Context) (string, error) { return product.Get(ctx, 1) })
			expect.Equal(t, "error", err, nil)
			return "view"
		},
		"a load within a load": func(ctx context.Context, t *testing.T, g *Guard, product *Cache[int, string]) string {
			view := must(NewCache(g, CacheConfig[int, string]{Name: "view", Load: func(ctx context.Context, k int) (string, error) { return product.Get(ctx, k) }}))
			top := must(NewCache(g, CacheConfig[int, string]{Name: "top", Load: func(ctx context.Context, k int) (string, error) { return view.Get(ctx, k) }}))
			_, err := top.Get(ctx, 1)
			expect.Equal(t, "error", err, nil)
			expect.Equal(t, "the top's level", g.kinds.made.levels.Load().Of["top"], 2)
			return "view"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newFleet(t, standalone(t), 1, Config{}).guards[0]
			product := must(NewCache(g, CacheConfig[int, string]{Name: "product", Load: func(context.Context, int) (string, error) { return "v", nil }}))
			expect.Equal(t, "nothing is known", g.kinds.made.levels.Load(), nil)
			of := makes(t.Context(), t, g, product)
			expect.Equal(t, "the level", g.kinds.made.levels.Load().Of[of], 1)
			expect.Equal(t, "the product's", g.kinds.made.levels.Load().Of["product"], 0)
		})
	}
}
