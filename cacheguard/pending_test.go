package cacheguard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAnInvalidationThatFailedIsSentAgain(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	keys := numbered(0, 300)
	for _, k := range keys[:3] {
		mustGet(t, f.guards[1], k, returns("old"))
	}
	proxy.Refuse(true)
	expect.Fails(t, f.guards[0].Invalidate(context.Background(), keys...))
	expect.Equal(t, "pending", f.guards[0].writes.Pending(), 300)
	proxy.Refuse(false)
	redistest.Await(t, "nothing is pending", func() bool { return f.guards[0].writes.Pending() == 0 })
	for _, k := range keys[:3] {
		expect.Equal(t, k, mustGet(t, f.guards[1], k, returns("new")), "new")
	}
}

func TestWhatIsPendingIsNotServed(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	mustGet(t, f.guards[0], "k", returns("old"))
	rule := proxy.On(scriptOf("invalidate"), redistest.ReplyError("READONLY for a while"))
	expect.Fails(t, f.guards[0].Invalidate(context.Background(), "k"))
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("new")), "new")
	values, err := GetMany(context.Background(), f.guards[0], []string{"k", "other"}, openShelf().load)
	expect.Equal(t, "values", fmt.Sprint(values, err), "map[k:v:k other:v:other] <nil>")
	expect.Equal(t, "bypassed", f.events.count(Bypassed), 2)

	rule.Remove()
	redistest.Await(t, "nothing is pending", func() bool { return f.guards[0].writes.Pending() == 0 })
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("newest")), "newest")
}

// What GetMany reads while an invalidation is pending is old, even if that has been sent by the time of the reply.
func TestWhatWasReadWhileItWasPendingIsNotServed(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing})
	mustGet(t, f.guards[0], "k", returns("old"))
	refused := proxy.On(scriptOf("invalidate"), redistest.ReplyError("READONLY for a while"))
	expect.Fails(t, f.guards[0].Invalidate(context.Background(), "k"))
	held := proxy.On(reading, redistest.HoldReply).Times(1)
	values := make(chan map[string]string, 1)
	go func() { // owner: the test; ends with GetMany; joined by receiving
		found, _ := GetMany(context.Background(), f.guards[0], []string{"k"}, openShelf().load)
		values <- found
	}()
	var found map[string]string
	select {
	case <-held.Hit():
		refused.Remove()
		redistest.Await(t, "nothing is pending", func() bool { return f.guards[0].writes.Pending() == 0 })
		held.Release()
		found = <-values
	case found = <-values: // not read at all
	}
	expect.Equal(t, "value", found["k"], "v:k")
}

func TestCloseTriesOnceMoreToSendWhatIsPending(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	mustGet(t, f.guards[1], "k", returns("old"))
	rule := proxy.On(scriptOf("invalidate"), redistest.ReplyError("ERR not now")).Times(1)
	expect.Fails(t, f.guards[0].Invalidate(context.Background(), "k"))
	<-rule.Hit()
	expect.Equal(t, "Close", f.guards[0].Close(), nil)
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns("new")), "new")
}

func TestCloseNamesWhatItForgets(t *testing.T) {
	t.Parallel()
	cfg, log := logged()
	f, proxy := broken(t, shared, cfg)
	proxy.On(scriptOf("invalidate"), redistest.ReplyError("ERR not now"))
	expect.Fails(t, f.guards[0].Invalidate(context.Background(), numbered(0, 12)...))
	expect.Equal(t, "Close", f.guards[0].Close(), nil)
	expect.Says(t, strings.Join(lines(log(), "Close forgets"), ""), "level=WARN", " count=12 ", " and 2 more")
}

// One node of a cluster that hangs must not keep the keys of the others from being invalidated.
func TestInvalidationsOfANodeThatHangsArePendingAndThoseOfOthersSent(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.MaxRedirects = -1 })
	f := newFleetOn(t, rdb, Config{RedisTimeout: 2 * time.Second}, rdb) // a machine that is busy is not a node that hangs
	f.events.quiet = true
	g, keys := f.guards[0], numbered(0, 100)
	ofHung := func(key string) bool { return g.breakers.Part(g.keys.ValueKey(key)) < breaker.Parts/3 } // masters have equal shares, in order
	mustInvalidate(t, g, keys...)                                                                      // the scripts are known now
	c.Node(0).Pause()
	defer c.Node(0).Resume()
	err := g.Invalidate(context.Background(), keys...)
	for _, key := range keys {
		expect.Equal(t, key, g.writes.IsPending(key), ofHung(key))
	}
	expect.Fails(t, err)
}

func TestALoadThatWaitedForItsSlotUntilRedisIsBackIsStored(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{MaxLoads: 1})
	g := f.guards[0]
	proxy.Refuse(true)
	busy, late := newSource("busy"), newSource("late")
	first := async(g, "busy", busy.load)
	<-busy.begun
	f.awaitBreaker(true)
	second := async(g, "late", late.load)
	redistest.Await(t, "it waits", func() bool {
		return g.flights.Count(only(flightKey{key: "late", shape: protocol.ShapeOf[string]{}, mode: direct})).Callers == 1
	})
	proxy.Refuse(false)
	f.awaitBreaker(false)
	close(busy.release)
	<-late.begun
	expect.Equal(t, "held", f.held("late"), true)
	close(late.release)
	want(t, first, "busy")
	want(t, second, "late")
	expect.Equal(t, "value elsewhere", mustGet(t, f.guards[1], "late", unwanted[string](t)), "late")
	expect.Equal(t, "bypassed", f.events.count(Bypassed), 1)
}

func TestAPendingKeyIsNotAskedForWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{MaxLoads: 1})
	g := f.guards[0]
	mustGet(t, f.guards[1], "k", returns("old"))
	proxy.Refuse(true)
	busy := newSource("busy")
	first := async(g, "busy", busy.load)
	<-busy.begun
	f.awaitBreaker(true)
	proxy.On(scriptOf("invalidate"), redistest.ReplyError("ERR sorry"))
	if g.Invalidate(t.Context(), "k") == nil {
		t.Error("it could be invalidated")
	}
	second := async(g, "k", returns("new"))
	redistest.Await(t, "it waits", func() bool {
		return g.flights.Count(only(flightKey{key: "k", shape: protocol.ShapeOf[string]{}, mode: direct})).Callers == 1
	})
	proxy.Refuse(false)
	f.awaitBreaker(false)
	close(busy.release)
	want(t, first, "busy")
	want(t, second, "new")
}

// awaitBreaker makes guard 0 ask until its breaker is open, or closed.
func (f *fleet) awaitBreaker(open bool) {
	f.t.Helper()
	redistest.Await(f.t, "a change of the breaker", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, _ = Get(ctx, f.guards[0], "probe", returns("probe")) // waits for a slot
		return f.guards[0].breakers.Of(f.value("probe")).IsOpen() == open
	})
}
