package cacheguard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// lines returns the lines of a log that have the text.
func lines(log, text string) (found []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func TestAnOutageUnderLoadIsAHandfulOfLines(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cfg, text := logged()
	cfg.Prefix, cfg.Instance, cfg.RedisTimeout = "shop", "shop-1", brisk
	cfg.Local = LocalConfig{MaxEntries: 2000}
	g := newGuard(t, server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Second }), cfg)
	part := expect.Samples(5, 100)
	keys := numbered(0, 10*part)
	getAll := func() {
		var all sync.WaitGroup
		for some := range slices.Chunk(keys, part) {
			all.Go(func() {
				for _, key := range some {
					_, _ = Get(context.Background(), g, key, returns("v")) // loads without Redis while it is frozen
				}
			})
		}
		all.Wait()
	}
	getAll()
	redistest.Await(t, "the inbox is subscribed", func() bool { return g.inbox.Address() != "" })
	getAll()
	server.Pause()
	redistest.Await(t, "the outage is logged", func() bool {
		getAll()
		_ = g.Invalidate(context.Background(), keys[:20]...)
		return len(lines(text(), "redis unavailable")) == 1 && g.journal.Lasts("pending") > 0
	})
	redistest.Await(t, "the subscription is lost, for longer than one that has a line", func() bool {
		getAll()
		return g.journal.Lasts("deaf") > 3*time.Second
	})
	server.Resume()
	redistest.Await(t, "all is over", func() bool {
		getAll()
		return len(lines(text(), "redis available again")) > 0 && g.journal.Lasts("pending") == 0 && g.journal.Lasts("deaf") == 0
	})
	if n := strings.Count(text(), "\n"); n > 20 {
		t.Errorf("%d lines:\n%s", n, text())
	}
	expect.Says(t, lines(text(), "redis unavailable")[0], "error=")
	expect.Says(t, lines(text(), "redis available again")[0], "cache=shop", "instance=shop-1", "lasted=", "requests_failed=", "loads_without_redis=", "keys_pending=")
}

func TestLoadsThatWaitForMaxLoadsAreLogged(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.MaxLoads = 1
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	db := newSource("v")
	first := async(g, "a", db.load)
	<-db.begun
	second := async(g, "b", db.load)
	redistest.Await(t, "it is logged", func() bool { return len(lines(text(), "loads wait for MaxLoads")) == 1 })
	close(db.release)
	want(t, first, "v")
	want(t, second, "v")
	redistest.Await(t, "so is the end", func() bool {
		return len(lines(text(), "no load waits for MaxLoads")) == 1 && strings.Contains(text(), "loads_that_waited=1")
	})
}

func TestSlowLoadsDamagedEntriesAndTakeoversAreLogged(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.SlowLoad = time.Millisecond
	f := newFleet(t, standalone(t), 1, cfg)
	g := f.guards[0]
	f.redis.Set(t.Context(), f.value("damaged"), "nonsense", time.Minute)
	mustGet(t, g, "damaged", returns("v"))
	f.redis.HSet(t.Context(), f.lease("dead"), "token", "x", "deadline", 1, "length", 1, "generation", "g")
	mustGet(t, g, "dead", returns("v"))
	mustGet(t, g, "slow", func(context.Context) (string, error) {
		redistest.Await(t, "it is logged while it runs", func() bool { return strings.Contains(text(), "slow load, it still runs") })
		<-time.After(cfg.SlowLoad) // and the end, by when the loader began
		return "v", nil
	})
	for _, want := range []string{"entry cannot be decoded", "lease taken over", "slow load, it still runs", `slow load"`} {
		expect.Equal(t, want, len(lines(text(), want)), 1)
	}
	expect.Equal(t, "damaged", f.told().damaged.Load(), 1) // hooks are called as usual
	expect.Equal(t, "takeovers", f.events.takeovers.Load(), 1)
}

func TestABypassIsLoggedWithWhatItCost(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	g.Bypass(true)
	g.Bypass(true)
	for i := range 3 {
		mustGet(t, g, fmt.Sprint(i), returns("v"))
	}
	g.Bypass(false)
	expect.Equal(t, "lines", strings.Count(text(), "\n"), 2)
	expect.Says(t, text(), `where="this instance"`, "loads=3")
}

func TestAClockThatStepsIsLogged(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	now := time.Now()
	g.serverClocks.Note("k", now, now)
	g.serverClocks.Note("k", now.Add(time.Millisecond), now)
	expect.Equal(t, "log", text(), "")
	g.serverClocks.Note("k", now.Add(time.Hour), now)
	expect.Equal(t, "lines", len(lines(text(), "clock of redis stepped")), 1)
	g.serverClocks.Note("k", now.Add(59*time.Minute), now)
	expect.Equal(t, "lines, of a step back", len(lines(text(), "by=-1m0s")), 1)
}

func TestWhatIsPendingIsLoggedWhateverItIs(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*Guard) error{
		"keys": func(g *Guard) error { return g.Invalidate(context.Background(), "k") },
		"tags": func(g *Guard) error { return g.InvalidateTags(context.Background(), "t") },
		"all":  func(g *Guard) error { return g.InvalidateAll(context.Background()) },
	}, func(t *testing.T, _ string, invalidate func(*Guard) error) {
		proxy := redistest.StartProxy(t, shared.Addr())
		cfg, text := logged()
		cfg.RedisTimeout = bearing
		f := newFleetOn(t, shared.Client(t), cfg, proxy.Client(t))
		f.events.quiet = true
		g := f.guards[0]
		rules := []*redistest.Rule{
			proxy.On(scriptOf("invalidate"), redistest.ReplyError("UNWILLING for a while")),
			proxy.On(scriptOf("revoke"), redistest.ReplyError("UNWILLING for a while")),
		}
		expect.Fails(t, invalidate(g))
		s := g.Stats()
		expect.Equal(t, "pending", s.Pending, 1)
		expect.Equal(t, "for a time", s.PendingFor > 0, true)
		redistest.Await(t, "it is logged", func() bool { return len(lines(text(), "invalidations pending")) == 1 })
		for _, rule := range rules {
			rule.Remove()
		}
		redistest.Await(t, "its end is logged", func() bool { return len(lines(text(), "pending invalidations sent")) == 1 })
		s = g.Stats()
		expect.Equal(t, "pending in the end", s.Pending, 0)
		expect.Equal(t, "for a time", s.PendingFor, 0)
	})
}
