package cacheguard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

type seesKey struct{}

// seeing is the context of somebody who sees rows in this state.
func seeing(ctx context.Context, rows string) context.Context {
	return context.WithValue(ctx, seesKey{}, rows)
}

// ledger is a source that shows each transaction rows of its own, and holds up the first one who asks.
type ledger struct {
	holds          atomic.Bool // the next one who asks is held up
	begun, release chan struct{}
	asked          atomic.Int64
}

func (l *ledger) row(ctx context.Context) (string, error) {
	l.asked.Add(1)
	if l.holds.CompareAndSwap(true, false) {
		l.begun <- struct{}{}
		<-l.release
	}
	return ctx.Value(seesKey{}).(string), nil
}

// transactions are the contexts that belong to one, whatever they are used for. They name other keys than the ones that
// are read.
var transactions = map[string]func(t *testing.T, f *fleet, read func(context.Context)){
	"an intent": func(t *testing.T, f *fleet, read func(context.Context)) {
		in := mustIntend(t, f.guards[0], Changes{Keys: []string{"named"}, Tags: []string{"named"}})
		defer mustDone(t, in)
		read(in.Context(t.Context()))
	},
	"an intent that has taken too long": func(t *testing.T, f *fleet, read func(context.Context)) {
		in := mustIntend(t, f.guards[0], Changes{Keys: []string{"named"}})
		redistest.Await(t, "it is over", func() bool { n, _ := f.guards[0].writes.Intents(); return n == 0 })
		read(in.Context(t.Context()))
	},
	"an intent that is done": func(t *testing.T, f *fleet, read func(context.Context)) {
		in := mustIntend(t, f.guards[0], Changes{Keys: []string{"named"}})
		mustDone(t, in)
		read(in.Context(t.Context()))
	},
	"an intent of another Guard": func(t *testing.T, f *fleet, read func(context.Context)) {
		in := mustIntend(t, f.guards[1], Changes{})
		defer mustDone(t, in)
		read(in.Context(t.Context()))
	},
	"an update": func(t *testing.T, f *fleet, read func(context.Context)) {
		expect.Equal(t, "Update", f.guards[0].Update(t.Context(), "named", func(ctx context.Context) error { read(ctx); return nil }), nil)
	},
	"a put": func(t *testing.T, f *fleet, read func(context.Context)) {
		c := newCaches(t, f, CacheConfig[string, string]{Name: "put", Load: func(context.Context, string) (string, error) { return "", nil }})[0]
		expect.Equal(t, "Put", c.Put(t.Context(), "named", func(ctx context.Context) (string, error) { read(ctx); return "", nil }), nil)
	},
	"a loader within an update": func(t *testing.T, f *fleet, read func(context.Context)) {
		err := f.guards[0].Update(t.Context(), "named", func(ctx context.Context) error {
			_, err := Get(ctx, f.guards[1], "outer", func(ctx context.Context) (string, error) { read(ctx); return "", nil })
			return err
		})
		expect.Equal(t, "Update", err, nil)
	},
}

// readings are the ways to read a key.
func readings(t *testing.T, f *fleet, from *ledger) map[string]func(ctx context.Context, key string) (string, error) {
	one := func(ctx context.Context, _ string) (string, error) { return from.row(ctx) }
	many := func(ctx context.Context, keys []string) (map[string]string, error) {
		v, err := from.row(ctx)
		return map[string]string{keys[0]: v}, err
	}
	g := f.guards[0]
	c := newCaches(t, f, CacheConfig[string, string]{Name: "row", Load: one, LoadMany: many})[0]
	each := newCaches(t, f, CacheConfig[string, string]{Name: "each", Load: one})[0]
	return map[string]func(context.Context, string) (string, error){
		"Get": func(ctx context.Context, key string) (string, error) { return Get(ctx, g, key, from.row) },
		"GetMany": func(ctx context.Context, key string) (string, error) {
			found, err := GetMany(ctx, g, []string{key}, many)
			return found[key], err
		},
		"Fetch": func(ctx context.Context, key string) (string, error) {
			v, _, err := Fetch(ctx, g, key, Source[string]{Load: func(ctx context.Context, _ *string) (string, error) { return from.row(ctx) }})
			return v, err
		},
		"Get of a Cache": c.Get,
		"GetMany of a Cache": func(ctx context.Context, key string) (string, error) {
			found, err := c.GetMany(ctx, []string{key})
			return found[key], err
		},
		"GetMany with Load": func(ctx context.Context, key string) (string, error) {
			found, err := each.GetMany(ctx, []string{key})
			return found[key], err
		},
	}
}

func TestWhatATransactionReadsIsStoredForNobody(t *testing.T) {
	t.Parallel()
	expect.Each(t, transactions, func(t *testing.T, name string, within func(t *testing.T, f *fleet, read func(context.Context))) {
		f := newFleet(t, standalone(t), 2, transactionConfig(name))
		for how, read := range readings(t, f, new(ledger)) {
			within(t, f, func(ctx context.Context) {
				v, err := read(seeing(ctx, "uncommitted"), how)
				expect.Equal(t, how, fmt.Sprint(v, err), "uncommitted<nil>")
			})
			f.stored()
			v, err := read(seeing(t.Context(), "committed"), how)
			expect.Equal(t, how+", for others", fmt.Sprint(v, err), "committed<nil>")
		}
	})
}

// One of them is held up in its loader while the other one reads the same key.
func TestATransactionSharesNoLoadWithOthers(t *testing.T) {
	t.Parallel()
	for name, within := range transactions {
		for first, second := range map[string]string{"committed": "uncommitted", "uncommitted": "committed"} {
			expect.Beside(t, name+", "+first+" first", func(t *testing.T) {
				f := newFleet(t, standalone(t), 2, transactionConfig(name))
				from := &ledger{begun: make(chan struct{}), release: make(chan struct{})}
				for how, read := range readings(t, f, from) {
					within(t, f, func(ctx context.Context) {
						of := map[string]context.Context{"committed": seeing(t.Context(), "committed"), "uncommitted": seeing(ctx, "uncommitted")}
						ask := func(who string) <-chan reply[string] {
							c := make(chan reply[string], 1)
							go func() { // owner: the test; ends with the read; joined by receiving
								v, err := read(of[who], how)
								c <- reply[string]{v, err}
							}()
							return c
						}
						from.holds.Store(true)
						early := ask(first)
						<-from.begun
						late := ask(second)
						redistest.Await(t, how+": the second one has its answer, or waits for that of the first", func() bool {
							runs := f.guards[0].flights.Count(nil)
							return len(late) == 1 || runs.Callers > runs.Running
						})
						from.release <- struct{}{}
						want(t, early, first)
						want(t, late, second)
					})
				}
			})
		}
	}
}

func TestATransactionReplacesNothingInTheBackground(t *testing.T) {
	t.Parallel()
	expect.Each(t, transactions, func(t *testing.T, name string, within func(t *testing.T, f *fleet, read func(context.Context))) {
		cfg := transactionConfig(name)
		cfg.TTL, cfg.StaleFor, cfg.Jitter = brief.TTL, brief.StaleFor, brief.Jitter
		f := newFleet(t, standalone(t), 2, cfg).knowClock()
		f.makeStale("Get", "old")
		f.makeStale("GetMany", "old")
		from := new(ledger)
		within(t, f, func(ctx context.Context) {
			for how, read := range readings(t, f, from) {
				if f.exists(f.value(how)) {
					v, err := read(seeing(ctx, "uncommitted"), how)
					expect.Equal(t, how, fmt.Sprint(v, err), "old<nil>")
				}
			}
		})
		redistest.Await(t, "nothing is loaded", func() bool { return f.guards[0].flights.Count(nil).Running == 0 })
		expect.Equal(t, "loads", from.asked.Load(), 0)
	})
}

func TestATransactionThatHasTakenTooLongStillReadsPastTheCache(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, transactionConfig("too long"))
	g, ctx := f.guards[0], context.Background()
	in := mustIntend(t, g, Changes{Keys: []string{"row"}, Tags: []string{"shoes"}})
	redistest.Await(t, "it is over", func() bool { n, _ := g.writes.Intents(); return n == 0 && !f.exists(f.intents("row")) })
	for _, key := range []string{"row", "list"} {
		mustGet(t, g, key, tagged("old", "shoes"))
		v, err := Get(in.Context(ctx), g, key, returns("uncommitted"))
		expect.Equal(t, key, fmt.Sprint(v, err), "uncommitted<nil>")
	}
	expect.ErrorIs(t, in.Done(ctx), rwlock.ErrLeaseLost)
	mustGet(t, g, "row", returns("new"))
	v, err := Get(in.Context(ctx), g, "row", unwanted[string](t))
	expect.Equal(t, "after Done", fmt.Sprint(v, err), "new<nil>")
}

func TestAPutWithinATransactionStoresNothing(t *testing.T) {
	t.Parallel()
	expect.Each(t, transactions, func(t *testing.T, name string, within func(t *testing.T, f *fleet, read func(context.Context))) {
		f := newFleet(t, standalone(t), 2, transactionConfig(name))
		c := newCaches(t, f, CacheConfig[string, string]{
			Name: "row", Load: func(context.Context, string) (string, error) { return "committed", nil },
		})[0]
		within(t, f, func(ctx context.Context) {
			expect.Equal(t, "Put", c.Put(ctx, "k", func(context.Context) (string, error) { return "uncommitted", nil }), nil)
			n, err := c.Warm(ctx, slices.Values([]string{"w"}), WarmConfig{})
			expect.Equal(t, "Warm", fmt.Sprint(n, err), fmt.Sprint(Warmed{}, errWarmWithin))
		})
		v, err := c.Get(t.Context(), "k")
		expect.Equal(t, "afterwards", fmt.Sprint(v, err), "committed<nil>")
	})
}

// transactionConfig is the Config for one of transactions.
func transactionConfig(name string) Config {
	cfg := Config{RedisTimeout: bearing}
	if strings.Contains(name, "too long") {
		cfg.LeaseTTL, cfg.UpdateTimeout = 2*time.Second, 2*time.Second
	}
	return cfg
}

// Within its context, reads see the transaction, and nobody else does.
func TestReadsWithinAnIntentGoPastTheCache(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]LocalConfig{"with a tier": {MaxEntries: 100, TTL: time.Hour}, "without": {}}, func(t *testing.T, _ string, local LocalConfig) {
		f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, Local: local}).listening()
		g := f.guards[0]
		for range 2 {
			mustGet(t, g, "row", returns("old"))
			mustGet(t, g, "list", tagged("old", "shoes"))
			mustGet(t, g, "other", tagged("old", "hats"))
		}
		in := mustIntend(t, g, Changes{})
		ctx := in.Context(t.Context())
		reads := func(ctx context.Context, key, value string) {
			t.Helper()
			v, err := Get(ctx, g, key, tagged("uncommitted", "shoes"))
			expect.Equal(t, key, fmt.Sprint(v, err), value+"<nil>")
			many, err := GetMany(ctx, g, []string{key}, func(ctx context.Context, keys []string) (map[string]string, error) {
				SetTags(ctx, "shoes")
				return map[string]string{key: "uncommitted"}, nil
			})
			expect.Equal(t, key+" of many", fmt.Sprint(many[key], err), value+"<nil>")
		}
		reads(ctx, "row", "old") // nothing is named yet
		expect.Equal(t, "Also", in.Also(ctx, Changes{Keys: []string{"row"}}), nil)
		reads(ctx, "row", "uncommitted")
		reads(ctx, "list", "old")
		expect.Equal(t, "Also", in.Also(ctx, Changes{Tags: []string{"shoes"}}), nil)
		for _, key := range []string{"row", "list", "missing"} {
			reads(ctx, key, "uncommitted")
		}
		reads(ctx, "other", "old")
		for _, key := range []string{"row", "list", "other"} {
			expect.Equal(t, key+", for others", mustGet(t, g, key, unwanted[string](t)), "old")
		}
		expect.Equal(t, "missing, for others", mustGet(t, g, "missing", returns("v")), "v")

		slow := newSource("uncommitted") // nobody shares its load
		within := asyncCtx(ctx, g, "row", slow.load)
		<-slow.begun
		nested := mustIntend(t, g, Changes{Keys: []string{"row"}})
		v, err := Get(nested.Context(context.Background()), g, "row", returns("another transaction's"))
		expect.Equal(t, "another transaction", fmt.Sprint(v, err), "another transaction's<nil>")
		v, err = Get(nested.Context(ctx), g, "row", returns("nested"))
		expect.Equal(t, "a nested one", fmt.Sprint(v, err), "nested<nil>")
		v, err = Get(nested.Context(ctx), g, "list", returns("nested"))
		expect.Equal(t, "a tag of the outer one", fmt.Sprint(v, err), "nested<nil>")
		mustDone(t, nested)
		close(slow.release)
		want(t, within, "uncommitted")
		mustDone(t, in)
		mustGet(t, g, "row", returns("new"))
		expect.Equal(t, "afterwards", mustGet(t, g, "row", unwanted[string](t)), "new")
		v, err = Get(ctx, g, "row", unwanted[string](t))
		expect.Equal(t, "with the context", fmt.Sprint(v, err), "new<nil>")
	})
}

func TestReadsWithinAWriteGoPastTheCacheForWhatItNames(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	g := f.guards[0]
	mustGet(t, g, "j", returns("old"))
	err := g.Update(t.Context(), "k", func(ctx context.Context) error {
		expect.Equal(t, "Also", Also(ctx, Changes{Keys: []string{"j"}}), nil)
		v, err := Get(ctx, g, "j", returns("uncommitted"))
		expect.Equal(t, "value", v, "uncommitted")
		expect.Equal(t, "for others", mustGet(t, g, "j", unwanted[string](t)), "old")
		return err
	})
	expect.Equal(t, "error", err, nil)
}
