package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Commands and replies arrive late. They must bring nothing old back.

func TestALeaseThatIsGrantedLateIsGivenBack(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: brisk, LeaseTTL: time.Minute})
	before := proxy.Commands()["evalsha"]
	rule := proxy.On(steps["acquire"], redistest.Hold)
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("v")), "v") // without Redis
	rule.Release()
	calm := 0
	redistest.Await(t, "the lease was granted and given back", func() bool {
		// acquire, a release when it was given up, and another one when the reply came; some may be sent twice
		if calm++; proxy.Commands()["evalsha"]-before < 3 || f.held("k") {
			calm = 0
		}
		return calm == 10
	})
	expect.Equal(t, "value elsewhere", mustGet(t, f.guards[1], "k", returns("w")), "w")
}

func TestAFillThatArrivesLateStoresNothingOverNewerData(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f, proxy := broken(t, server, Config{RedisTimeout: brisk, LeaseTTL: time.Minute})
	rule := proxy.On(steps["fill"], redistest.Hold)
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("old")), "old")
	mustInvalidate(t, f.guards[1], "k")
	expect.Equal(t, "value elsewhere", mustGet(t, f.guards[1], "k", returns("new")), "new")
	before := server.Commands()["evalsha"]
	rule.Release()
	redistest.Await(t, "the fill has run", func() bool { return server.Commands()["evalsha"] > before })
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), "new")
}

func TestAReadThatWasSentBeforeAnInvalidateIsNotForThoseWhoAskedAfterIt(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing})
	mustGet(t, f.guards[1], "k", returns("old"))
	rule := proxy.On(steps["get"], redistest.HoldReply).Times(1)
	before := async(f.guards[0], "k", returns("unused"))
	<-rule.Hit() // Redis has read the old value
	mustInvalidate(t, f.guards[1], "k")
	after := async(f.guards[0], "k", returns("new"))
	rule.Release()
	want(t, before, "old")
	want(t, after, "new")
}

// The message with a value may be under way while the value is invalidated and a new call joins the flight that waits
// for it.
func TestAPushedValueIsNotForThoseWhoAskedAfterAnInvalidate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: time.Minute}).listening()
	old := newSource("old")
	loading := async(f.guards[0], "k", old.load)
	<-old.begun
	before := async(f.guards[1], "k", returns("unused"))
	f.awaitRegistered("k", 1)
	generation, inbox := f.redis.HGet(ctx, f.lease("k"), "generation").Val(), f.guards[1].inbox.Address()
	f.redis.HDel(ctx, f.lease("k"), "inbox:"+inbox) // as if the fill had sent its message, and it were still on its way
	mustInvalidate(t, f.guards[0], "k")
	after := async(f.guards[1], "k", returns("new"))
	awaitCallers[string](f, 1, "k", 2)

	lease, entry := f.lease("k"), storedEntry("k", stampOn(t, f.guards[0], "k"), protocol.Raw, 0, 0, []byte("old"))
	f.redis.Publish(ctx, inbox, fmt.Sprintf("%d:%sv%s%s", len(lease), lease, generation, entry))
	want(t, before, "old")
	want(t, after, "new")
	close(old.release)
	want(t, loading, "old")
	f.stored()
	expect.Equal(t, "rejected", f.events.rejected.Load(), 1)
}

func TestACopyOfAcquireThatArrivesLateDoesNotReviveALoadThatWasInvalidated(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	slow := proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Second })
	f := newFleetOn(t, shared.Client(t), Config{RedisTimeout: bearing, LeaseTTL: time.Minute}, slow, shared.Client(t))
	warm(t, f)
	rule := proxy.On(steps["acquire"], redistest.Hold).Times(1)
	db := newSource("old")
	loading := async(f.guards[0], "k", db.load)
	<-db.begun // the client's retry was granted the lease
	<-rule.Hit()
	mustInvalidate(t, f.guards[1], "k")
	if f.held("k") {
		t.Fatal("held after Invalidate")
	}
	rule.Release() // the first copy arrives
	redistest.Await(t, "the late copy has run", func() bool { return f.held("k") })
	close(db.release)
	want(t, loading, "old")
	got := mustGet(t, f.guards[1], "k", returns("new"))
	expect.Equal(t, "value after Invalidate", got, "new")
}

// ofOwnKey are the ways in which a loader can have its own key invalidated.
var ofOwnKey = map[string]func(ctx context.Context, c *Cache[int, string]) error{
	"Invalidate":          func(ctx context.Context, c *Cache[int, string]) error { return c.Invalidate(ctx, 1) },
	"without its context": func(_ context.Context, c *Cache[int, string]) error { return c.Invalidate(context.Background(), 1) },
	"InvalidateAll":       func(ctx context.Context, c *Cache[int, string]) error { return c.InvalidateAll(ctx) },
	"InvalidateTags":      func(ctx context.Context, c *Cache[int, string]) error { return c.guard.InvalidateTags(ctx, "tag") },
	"Done": func(ctx context.Context, c *Cache[int, string]) error {
		in, err := c.guard.Intend(ctx, c.Changes(1))
		return errors.Join(err, in.Done(ctx))
	},
	"Update": func(ctx context.Context, c *Cache[int, string]) error {
		return c.Update(ctx, 1, func(context.Context) error { return nil })
	},
	"Put": func(ctx context.Context, c *Cache[int, string]) error {
		return c.Put(ctx, 1, func(context.Context) (string, error) { return "put", nil })
	},
}

// The invalidation must not wait for the load, which waits for it: LoadTimeout alone would end that.
func TestALoaderThatHasItsOwnKeyInvalidatedEnds(t *testing.T) {
	t.Parallel()
	for name, invalidate := range ofOwnKey {
		for what, ask := range map[string]func(c *Cache[int, string]) (string, error){
			"Get": func(c *Cache[int, string]) (string, error) { return c.Get(context.Background(), 1) },
			"GetMany": func(c *Cache[int, string]) (string, error) {
				all, err := c.GetMany(context.Background(), []int{1})
				return all[1], err
			},
		} {
			expect.Beside(t, name+" in a "+what, func(t *testing.T) {
				f := newFleet(t, standalone(t), 1, Config{LoadTimeout: off, WaitTimeout: off})
				var c *Cache[int, string]
				c = newCaches(t, f, CacheConfig[int, string]{
					Name: "own", Tags: func(int, string) []string { return []string{"tag"} },
					Load: func(ctx context.Context, _ int) (string, error) { return "loaded", invalidate(ctx, c) },
				})[0]
				got := make(chan reply[string], 1)
				go func() { // owner: the test; ends with the call; joined by receiving
					v, err := ask(c)
					got <- reply[string]{v, err}
				}()
				redistest.Await(t, "it ends", func() bool { return len(got) > 0 })
				want(t, got, "loaded")
				f.stored()
				v, how, err := c.ask(t.Context(), 1)
				expect.Equal(t, "error", err, nil)
				expect.Equal(t, "what was loaded is served: "+string(how), v == "loaded" && how != Loaded, false)
			})
		}
	}
}
