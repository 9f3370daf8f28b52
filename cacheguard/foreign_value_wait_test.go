package cacheguard

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestBusyLoadersDoNotHoldUpAValueThatAnotherInstanceStored(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{MaxLoads: 1, LeaseTTL: time.Minute}).listening()
	big := strings.Repeat("x", 5000)
	db, busy := newSource(big), newSource("busy")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	second := async(f.guards[1], "k", returns("unwanted"))
	f.awaitRegistered("k", 1)
	other := async(f.guards[1], "other", busy.load)
	<-busy.begun
	close(db.release)
	want(t, first, big)
	want(t, second, big) // though the one loader that may run here is still at it
	close(busy.release)
	<-other
}

func TestAForeignValueIsReplacedByOneLoad(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(f *fleet){
		"list":  func(f *fleet) { f.redis.LPush(context.Background(), f.value("k"), "x") },
		"empty": func(f *fleet) { f.redis.Set(context.Background(), f.value("k"), "", 0) },
		"c":     func(f *fleet) { f.redis.Set(context.Background(), f.value("k"), "c", 0) },
		"other": func(f *fleet) { f.redis.Set(context.Background(), f.value("k"), "other", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, standalone(t), 4, Config{LeaseTTL: time.Minute}).listening()
			plant(f)
			big := strings.Repeat("x", 5000)
			db := newSource(big)
			var replies []<-chan reply[string]
			for _, g := range f.guards {
				replies = append(replies, async(g, "k", db.load))
			}
			<-db.begun
			f.awaitRegistered("k", 3)
			close(db.release)
			for _, r := range replies {
				want(t, r, big)
			}
			expect.Equal(t, "loads", db.loads.Load(), 1)
		})
	}
}

func TestWhoCannotRegisterBecauseRedisIsFullStillWaits(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleetOn(t, s.Client(t), Config{LeaseTTL: time.Minute}, s.Client(t), s.Client(t), s.Client(t)).listening()
	warm(t, f)
	db := newSource("v")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	f.redis.ConfigSet(context.Background(), "maxmemory", "1")
	second := async(f.guards[1], "k", db.load)
	third := async(f.guards[2], "k", db.load)
	awaitCallers[string](f, 1, "k", 1)
	awaitCallers[string](f, 2, "k", 1)
	hold(t, 200*time.Millisecond)
	expect.Equal(t, "loads", db.loads.Load(), 1)
	f.redis.ConfigSet(context.Background(), "maxmemory", "0")
	close(db.release)
	for _, r := range []<-chan reply[string]{first, second, third} {
		want(t, r, "v")
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

func TestAHitIsNotHeldUpByALoadThatWasOvertaken(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: time.Minute})
	slow := newSource("old")
	first := async(f.guards[0], "k", slow.load)
	<-slow.begun
	mustInvalidate(t, f.guards[1], "k")
	expect.Equal(t, "new", mustGet(t, f.guards[1], "k", returns("new")), "new")
	second := async(f.guards[0], "k", returns("unwanted"))
	want(t, second, "new") // while the load goes on
	close(slow.release)
	<-first
}
