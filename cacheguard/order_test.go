package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
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
func newLayers(t *testing.T, cfg Config, names ...string) *layers {
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
			cfg := CacheConfig[int, string]{Name: name, Tags: func(int, string) []string { return []string{name, "all"} }}
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

// ofEnds matches what ends something, and not what announces it.
func ofEnds(args []string) bool {
	for _, script := range []string{"done", "invalidate"} {
		if redistest.Script(protocol.Source(script))(args) {
			return true
		}
	}
	return false
}

// holds holds the writer's scripts on the node.
func (l *layers) holds() *redistest.Rule { return l.proxy.On(ofScripts, redistest.Hold) }

// changes name layers by their keys, one after the other.
func (l *layers) changes(layers ...int) (all []Changes) {
	for _, i := range layers {
		all = append(all, Changes{Keys: []string{l.key(i)}})
	}
	return all
}

// intends is a transaction that names in this order what f returns.
func intends(f func(l *layers) []Changes) func(*testing.T, *layers) func(context.Context) error {
	return func(t *testing.T, l *layers) func(context.Context) error {
		c := f(l)
		in, err := l.f.guards[0].Intend(t.Context(), c[0], c[1:]...)
		expect.Equal(t, "error", err, nil)
		return in.Done
	}
}

// Whatever is held back: nobody has a view of the old product when the call has returned.
func TestWhatAWriterNamesLaterEndsWhenRedisHasAcknowledgedWhatItNamesFirst(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(t *testing.T, l *layers) (end func(context.Context) error){ // before the commit
		"keys":                    intends(func(l *layers) []Changes { return l.changes(0, 1) }),
		"a key, and then a tag":   intends(func(l *layers) []Changes { return append(l.changes(0), Changes{Tags: []string{"view"}}) }),
		"a tag, and then a key":   intends(func(l *layers) []Changes { return append([]Changes{{Tags: []string{"product"}}}, l.changes(1)...) }),
		"a tag that both have":    intends(func(*layers) []Changes { return []Changes{{Tags: []string{"all"}}, {Tags: []string{"all"}}} }),
		"nothing, and then order": intends(func(l *layers) []Changes { return append([]Changes{{}}, l.changes(0, 1)...) }),
		"Also": func(t *testing.T, l *layers) func(context.Context) error {
			in, err := l.f.guards[0].Intend(t.Context(), Changes{})
			expect.Equal(t, "error", err, nil)
			c := l.changes(0, 1)
			expect.Equal(t, "error", in.Also(t.Context(), c[0], c[1]), nil)
			return in.Done
		},
		"two calls": func(_ *testing.T, l *layers) func(context.Context) error {
			return func(ctx context.Context) error {
				return errors.Join(l.f.guards[0].Invalidate(ctx, l.key(0)), l.f.guards[0].Invalidate(ctx, l.key(1)))
			}
		},
	}, func(t *testing.T, _ string, begin func(t *testing.T, l *layers) (end func(context.Context) error)) {
		l := newLayers(t, Config{}, "product", "view")
		expect.Equal(t, "the view", l.read(1), "old")
		l.f.stored()
		end := begin(t, l)
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

// What comes after what is pending ends again when that has reached Redis, step by step.
func TestWhatComesAfterWhatIsPendingEndsAgainAfterIt(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(t *testing.T, l *layers) (end func(context.Context) error){
		"Done": intends(func(l *layers) []Changes { return l.changes(0, 1, 2) }),
		"Update": func(_ *testing.T, l *layers) func(context.Context) error {
			return func(ctx context.Context) error {
				return l.f.guards[0].Update(ctx, "another:"+l.key(0), func(ctx context.Context) error {
					c := l.changes(0, 1, 2)
					return Also(ctx, c[0], c[1:]...)
				})
			}
		},
	}, func(t *testing.T, _ string, begin func(t *testing.T, l *layers) (end func(context.Context) error)) {
		l := newLayers(t, Config{}, "product", "view", "page")
		expect.Equal(t, "the page", l.read(1), "old")
		l.f.stored()
		end := begin(t, l)
		l.write("new")
		refused := l.proxy.On(ofEnds, redistest.ReplyError("ERR not now"))
		expect.Equal(t, "the call has failed", end(context.Background()) != nil, true)
		expect.Equal(t, "the page meanwhile", l.read(1), "old")
		l.f.stored()
		refused.Remove()
		redistest.Await(t, "nothing is pending", func() bool { return l.f.guards[0].Stats().Pending == 0 })
		expect.Equal(t, "the page", l.read(1), "new")
		expect.Equal(t, "the writer's page", l.read(0), "new")
	})
}

// What is pending dies with its process, and is over when its intent expires. So must be what others made of it until then.
func TestWhatComesAfterWhatIsPendingStandsOn(t *testing.T) {
	t.Parallel()
	l := newLayers(t, Config{LeaseTTL: time.Minute}, "product", "view")
	in := must(l.f.guards[0].Intend(t.Context(), l.changes(0)[0], l.changes(1)...))
	defer l.proxy.On(ofEnds, redistest.ReplyError("ERR not now")).Remove()
	expect.Equal(t, "the call has failed", in.Done(context.Background()) != nil, true)
	for i, name := range l.names {
		expect.Equal(t, "intents on the "+name, l.f.redis.ZCard(context.Background(), l.f.intents(l.key(i))).Val(), 1)
	}
}

// A process that dies renews none: so what is named first expires first, however far each was renewed.
func TestIntentsOfALaterPlaceStandALeaseLonger(t *testing.T) {
	t.Parallel()
	l := newLayers(t, Config{LeaseTTL: time.Minute}, "product", "view", "page")
	began, c := time.Now(), l.changes(0, 1, 2)
	in, err := l.f.guards[0].Intend(t.Context(), c[0], c[1:]...)
	expect.Equal(t, "error", err, nil)
	defer in.Done(context.Background())
	ends := func(i int) time.Duration {
		all := l.f.redis.ZRangeWithScores(context.Background(), l.f.intents(l.key(i)), 0, -1).Val()
		expect.Equal(t, "intents", len(all), 1)
		return time.Duration(all[0].Score) * time.Millisecond
	}
	longer := func(what string) {
		for i := range 2 {
			if more, took := ends(i+1)-ends(i), time.Since(began); more < time.Minute-took || more > time.Minute+took {
				t.Errorf("%s: intents on %s stand %v longer than those on %s", what, l.names[i+1], more, l.names[i])
			}
		}
	}
	longer("announced")
	l.f.guards[0].keeper.RenewAll()
	longer("renewed")
}

// Nothing needs to be ended before an update: as long as its end is held, nobody stores what a load has read before the commit, and no call that began after that gets it.
func TestWhatIsMadeOfWhatIsUpdatedIsMadeOfNothingOld(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(ctx context.Context, l *layers, write func(context.Context) error) error{
		"Update, with Also": func(ctx context.Context, l *layers, write func(context.Context) error) error {
			return l.f.guards[0].Update(ctx, l.key(0), func(ctx context.Context) error {
				return errors.Join(Also(ctx, Changes{Keys: []string{l.key(1)}}), write(ctx))
			})
		},
		"UpdateMany": func(ctx context.Context, l *layers, write func(context.Context) error) error {
			return l.f.guards[0].UpdateMany(ctx, []string{l.key(0), l.key(1)}, write)
		},
	}, func(t *testing.T, _ string, update func(ctx context.Context, l *layers, write func(context.Context) error) error) {
		l := newLayers(t, Config{WaitTimeout: time.Millisecond}, "product", "view")
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
