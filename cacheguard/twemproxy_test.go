//go:build twemproxy

package cacheguard

import (
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// behindTwemproxy is the arena where nobody can subscribe: waiters poll.
func behindTwemproxy(servers int) func(t *testing.T) arena {
	return func(t *testing.T) arena {
		var all []*redistest.Server
		for range servers {
			all = append(all, redistest.Start(t))
		}
		proxy := redistest.StartTwemproxy(t, all...)
		a := arena{deaf: true, client: func(tb testing.TB) client { return proxy.Client(tb) }}
		if servers == 1 {
			a.around = func(tb testing.TB) client { return all[0].Client(tb) }
		}
		return a
	}
}

func TestPromisesBehindTwemproxy(t *testing.T) {
	t.Parallel()
	a := behindTwemproxy(1)(t)
	for _, p := range promises {
		expect.Beside(t, p.name, func(t *testing.T) {
			p.test(t, a)
		})
	}
}

func TestInstancesBehindTwemproxyShareALoadByAsking(t *testing.T) {
	t.Parallel()
	f := newFleet(t, behindTwemproxy(1)(t), 3, Config{})
	db := newSource("v")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	others := []<-chan reply[string]{async(f.guards[1], "k", db.load), async(f.guards[2], "k", db.load)}
	awaitCallers[string](f, 1, "k", 1)
	awaitCallers[string](f, 2, "k", 1)
	close(db.release)
	want(t, first, "v")
	for _, other := range others {
		want(t, other, "v")
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

func TestSelfCheckBehindTwemproxyNamesTheCommandThatItLacks(t *testing.T) {
	t.Parallel()
	f := newFleet(t, behindTwemproxy(1)(t), 1, Config{})
	expect.Says(t, f.guards[0].SelfCheck(redistest.Patiently(t)), "cannot use Redis, at TIME: EOF")
}
