package cacheguard

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// onServer is a server of the test's own, whose counters it can read.
func onServer(t *testing.T) (arena, *redistest.Server) {
	s := redistest.Start(t)
	return arena{client: func(tb testing.TB) client { return s.Client(tb) }}, s
}

// traffic returns what the server ran during f, but for what connections and subscriptions send when they begin.
func traffic(s *redistest.Server, f func()) map[string]int64 {
	before := s.Commands()
	f()
	diff := make(map[string]int64)
	for name, n := range s.Commands() {
		if n -= before[name]; n > 0 {
			diff[name] = n
		}
	}
	for _, name := range []string{"hello", "subscribe", "script|load", "eval", "exists", "hkeys", "pttl"} { // also what Guards do by the clock
		delete(diff, name)
	}
	return diff
}

// wantTraffic wants that what prepare returns can be done with this traffic: what Guards do by the clock, as probes, comes on top now and
// then, and on a busy machine often.
func wantTraffic(t *testing.T, s *redistest.Server, want map[string]int64, prepare func(try int) func()) {
	t.Helper()
	var got map[string]int64
	for try := 0; try < 20 && !maps.Equal(got, want); try++ {
		got = traffic(s, prepare(try))
	}
	if !maps.Equal(got, want) {
		t.Errorf("commands: %v, want %v", got, want)
	}
}

// warm makes the server know the scripts, and the guards what they read once.
func warm(t *testing.T, f *fleet) {
	for _, g := range f.guards {
		mustGet(t, g, "warm", returns("v"))
		mustInvalidate(t, g, "warm")
	}
}

func TestAHitIsOneMGETOfTheValueAndItsEpochs(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 1, Config{}).listening()
	mustGet(t, f.guards[0], "k", returns("v"))
	wantTraffic(t, s, map[string]int64{"mget": 1}, func(int) func() {
		return func() { mustGet(t, f.guards[0], "k", unwanted[string](t)) }
	})
}

func TestAnUncontendedLoadIsThreeRequestsAndPublishesNothing(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 1, Config{}).listening()
	warm(t, f)
	loads := 0
	load := func() {
		loads++
		mustGet(t, f.guards[0], fmt.Sprint("k", loads), returns("v"))
	}
	wantTraffic(t, s, map[string]int64{
		"mget": 1, "evalsha": 2, // the read; acquire, which sees that nothing is there (EXISTS, which is not counted) and takes the lease; fill
		"hset": 1, "pexpire": 1, "time": 2, "hgetall": 1, "set": 1, "del": 1,
	}, func(int) func() { return load })
	expect.Equal(t, "requests", s.FewestReads(3, load), 3)
}

func TestAWaitingInstanceMakesTwoRequestsAndIsPushedTheValue(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 2, Config{}).listening()
	warm(t, f)
	fill := map[string]int64{"evalsha": 1, "hgetall": 1, "time": 1, "set": 1, "del": 1, "publish": 1}
	wantTraffic(t, s, fill, func(try int) func() {
		db, key := newSource("v"), fmt.Sprint("k", try)
		first := async(f.guards[0], key, db.load)
		<-db.begun
		before := s.Commands()["get"]
		second := async(f.guards[1], key, db.load)
		f.awaitRegistered(key, 1)
		redistest.Await(t, "the one that waits has read its epoch", func() bool { return s.Commands()["get"]-before >= 2 }) // acquire has one, too
		return func() {
			close(db.release)
			want(t, first, "v")
			want(t, second, "v")
		}
	})
}

func TestALargeValueIsReadByThoseWhoWaited(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{}).listening()
	large := bytes.Repeat([]byte("x"), 5000)
	db := newSource("v")
	load := func(ctx context.Context) ([]byte, error) {
		_, err := db.load(ctx)
		return large, err
	}
	first := async(f.guards[0], "k", load)
	<-db.begun
	second := async(f.guards[1], "k", load)
	f.awaitRegistered("k", 1)
	close(db.release)
	expect.Equal(t, "size here", len((<-first).value), len(large))
	expect.Equal(t, "size there", len((<-second).value), len(large))
	expect.Equal(t, "loads", db.loads.Load(), 1)
}
