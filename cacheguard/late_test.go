package cacheguard

import (
	"context"
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
