package cacheguard

import (
	"context"
	"fmt"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// busyAt makes the Guard run the one loader that it may run at once, until it is released.
func busyAt(t *testing.T, g *Guard) (release func()) {
	t.Helper()
	busy := newSource("busy")
	reply := async(g, "busy", busy.load)
	<-busy.begun
	return func() {
		close(busy.release)
		want(t, reply, "busy")
	}
}

func TestALoadThatHasToWaitForItsTurnRunsNoScriptBefore(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 1, Config{MaxLoads: 1}).listening()
	warm(t, f)
	g := f.guards[0]
	release := busyAt(t, g)
	tries, waiting := 0, []<-chan reply[string]{}
	redistest.Await(t, "one waits for its turn, and has asked what there is, while nothing else sends a script", func() bool {
		tries++
		before := s.Commands()
		waiting = append(waiting, async(g, fmt.Sprint("k", tries), returns("v")))
		redistest.Await(t, "it waits for its turn", func() bool { return g.Stats().Queued == tries })
		after := s.Commands()
		return after["exists"]-before["exists"] == 1 && after["evalsha"] == before["evalsha"]
	})
	release()
	for _, reply := range waiting {
		want(t, reply, "v")
	}
}

// It tries until Redis is as near as it seems when nobody else needs the processor.
func TestALoadThatWaitedForItsTurnReadsWhatAnotherInstanceStored(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 2, Config{MaxLoads: 1}).listening()
	warm(t, f)
	tries := 0
	redistest.Await(t, "a read in place of a script", func() bool {
		tries++
		key := fmt.Sprint("k", tries)
		busy := newSource("busy")
		first := async(f.guards[1], fmt.Sprint("busy", tries), busy.load)
		<-busy.begun
		reply := async(f.guards[1], key, unwanted[string](t))
		redistest.Await(t, "it waits for its turn", func() bool { return f.guards[1].Stats().Queued == 1 })
		mustGet(t, f.guards[0], key, returns("v"))
		f.stored()
		before := s.Commands()
		close(busy.release)
		want(t, first, "busy")
		want(t, reply, "v")
		f.stored()
		return s.Commands()["evalsha"]-before["evalsha"] == 1 // the other load's fill
	})
}

func promiseBusyLoaders(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{MaxLoads: 1}).listening()
	release := busyAt(t, f.guards[1])
	db := newSource("v")
	there := async(f.guards[0], "k", db.load)
	<-db.begun
	here := async(f.guards[1], "k", unwanted[string](t))
	f.awaitRegistered("k", 1)
	close(db.release)
	want(t, there, "v")
	want(t, here, "v")

	var waiting []<-chan reply[int] // on all nodes, and several to a request
	for i := range 100 {
		waiting = append(waiting, async(f.guards[1], fmt.Sprint("waiting", i), returns(i)))
	}
	redistest.Await(t, "all wait for their turn", func() bool {
		return f.guards[1].Stats().Queued == len(waiting)
	})
	release()
	for i, r := range waiting {
		want(t, r, i)
	}
	expect.Equal(t, "Gets without the cache", f.events.count(Bypassed), 0)
}

func TestBusyLoadersDoNotHoldUpAHitWhereAMissIsExpected(t *testing.T) {
	t.Parallel()
	f := expectingMisses(t, standalone(t), Config{MaxLoads: 1})
	g := f.stored().guards[0]
	release := busyAt(t, g)
	expect.Equal(t, "a miss is expected", g.expected.Expected(), true)
	v, how, err := get(context.Background(), g, "missed0", unwanted[string](t))
	if v != "v" || how != Hit || err != nil {
		t.Errorf("got %q, %q, %v", v, how, err)
	}
	release()
}
