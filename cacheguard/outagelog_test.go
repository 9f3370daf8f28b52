package cacheguard

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestAnOutageOfAMinuteIsAHandfulOfLinesHoweverMuchFailsInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, text := logged()
		g := &Guard{cfg: cfg.withDefaults(), ofEpochs: new(epochInvalidations)}
		g.journal.init(g)
		g.cfg.Hooks = g.journal.hooks(Hooks{})
		defer g.journal.close()
		frozen := errors.New("i/o timeout")
		g.cfg.Hooks.OnBreaker(true)
		g.journal.subscribed(true, nil)
		g.journal.subscribed(false, frozen)
		g.invalidations.pending.count.Add(1)
		g.journal.owes("price:1")
		for n := range 600 { // a minute
			if n == 50 {
				for range 100 {
					g.journal.saturated.waits("max_loads", g.cfg.MaxLoads)
				}
			}
			for range 20 {
				_ = g.redisError("get", "price:1", frozen)
				g.journal.without.Add(1)
				g.journal.owes("price:1")
				g.cfg.Hooks.OnLoad("price:1", time.Minute, nil) // the database suffers
			}
			time.Sleep(100 * time.Millisecond)
		}
		for range 100 {
			g.journal.saturated.waited()
		}
		g.invalidations.pending.count.Add(-1)
		g.journal.owes("")
		g.journal.subscribed(true, nil)
		g.cfg.Hooks.OnBreaker(false)
		for _, once := range []string{
			"redis unavailable", "requests_failed=12000", "loads_without_redis=12000", "subscription lost", "subscription back",
			"invalidations owed", "owed invalidations sent", "loads wait for MaxLoads", "loads_that_waited=100",
		} {
			if n := len(lines(strings.ReplaceAll(text(), `"`, ""), once)); n != 1 {
				t.Errorf("%q is in %d lines", once, n)
			}
		}
		expect.Equal(t, "slow loads", len(lines(text(), "slow load")), 6)
		expect.Equal(t, "lines", strings.Count(text(), "\n"), 8+6)
		if t.Failed() {
			t.Log(text())
		}
	})
}
