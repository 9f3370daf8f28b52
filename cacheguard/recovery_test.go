package cacheguard

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

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
