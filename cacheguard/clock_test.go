package cacheguard

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/serverclock"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// step makes the Guard believe what it would if the clock of the key's server had been set by d just now.
func (g *Guard) step(key string, d time.Duration) {
	asked := time.Now().Add(-2 * serverclock.Pause)
	g.serverClocks.Note(key, asked.Add(-d), asked)
}

// knowsClock reports whether the guard has read the clock of the key's server.
func (g *Guard) knowsClock(key string) bool {
	_, asked := g.serverClocks.Last(key)
	return !asked.IsZero()
}

// aging are the settings that make entries say how long they are fresh.
var aging = map[string]Config{
	"StaleFor":     {TTL: time.Minute, StaleFor: 3 * time.Hour},
	"short stale":  {TTL: time.Minute, StaleFor: time.Second},
	"EarlyRefresh": {TTL: time.Minute, EarlyRefresh: 1},
	"Local":        withLocal,
}

// The same happens when a node whose clock is behind takes over.
func TestAServersClockThatIsSetBackMakesNobodyLoadWhatIsFresh(t *testing.T) {
	t.Parallel()
	for name, cfg := range aging {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.StartProxy(t, shared.Addr())
			f := newFleetOn(t, shared.Client(t), cfg, shared.Client(t), proxy.Client(t))
			keys := []string{"a", "b", "c"}
			for _, key := range keys {
				mustGet(t, f.guards[0], key, returns(key))
			}
			g := f.guards[1]
			expect.Equal(t, "first Get", mustGet(t, g, "a", unwanted[string](t)), "a") // subscribes
			redistest.Await(t, "the clock is known", func() bool { return g.knowsClock("a") })
			redistest.Await(t, "the script of an echo has run", func() bool { return g.local == nil || g.local.IsInformed("a") })
			for _, d := range []time.Duration{-time.Hour, -2 * time.Minute} {
				g.local.Forget(keys...)
				g.step("a", d)
				for range 20 {
					expect.Equal(t, "Get", mustGet(t, g, "a", unwanted[string](t)), "a")
				}
				asked := proxy.Commands()["evalsha"]
				got, err := GetMany(context.Background(), g, keys, func(context.Context, []string) (map[string]string, error) {
					t.Error("loaded")
					return nil, nil
				})
				if err != nil || got["a"] != "a" || got["b"] != "b" || got["c"] != "c" {
					t.Errorf("GetMany: %v, %v", got, err)
				}
				expect.Equal(t, "scripts after the first Get", proxy.Commands()["evalsha"]-asked, 0)
			}
		})
	}
}

func TestAGetManyIsTheFirstToLearnThatTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	for name, cfg := range aging {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, standalone(t), 1, cfg).knowClock()
			g, keys := f.guards[0], []string{"a", "b", "c"}
			load := func(_ context.Context, keys []string) (map[string]string, error) {
				values := make(map[string]string)
				for _, key := range keys {
					values[key] = key
				}
				return values, nil
			}
			for i := range 3 {
				g.step("a", -time.Hour)
				g.local.Forget(keys...)
				if got, err := GetMany(context.Background(), g, keys, load); err != nil || len(got) != 3 {
					t.Errorf("GetMany %d: %v, %v", i, got, err)
				}
			}
			expect.Equal(t, "loads", f.events.loads.Load(), 3) // of the first one
		})
	}
}

func TestAServersClockThatIsSetForwardIsReadAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, aging["StaleFor"]).knowClock()
	g := f.guards[0]
	g.step("k", time.Hour)
	mustGet(t, g, "k", returns("new"))
	redistest.Await(t, "the clock is mended", func() bool {
		mustGet(t, g, "k", unwanted[string](t))
		server, _ := g.serverClocks.Last("k")
		return time.Since(server).Abs() < time.Minute
	})
}

func TestWhatIsTooOldIsReplacedAlthoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, brief).knowClock()
	g := f.guards[0]
	f.makeStale("k", "old")
	redistest.Await(t, "it is too old by the server's clock, which the estimate may be ahead of", func() bool {
		raw, err := f.redis.Get(t.Context(), f.value("k")).Bytes()
		e, _ := protocol.DecodeEntry("k", raw)
		return err == nil && f.redis.Time(t.Context()).Val().Sub(e.Written) >= e.Fresh
	})
	g.step("k", -time.Hour)
	db := newSource("new")
	redistest.Await(t, "it is being replaced", func() bool {
		expect.Equal(t, "value", mustGet(t, g, "k", db.load), "old")
		select {
		case <-db.begun:
			return true
		default:
			return false
		}
	})
	close(db.release)
}

func TestWhatAJudgeRejectsIsReplacedHoweverOldItSeems(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, aging["StaleFor"]).knowClock()
	g := f.guards[0]
	mustGet(t, g, "k", returns("old"))
	g.step("k", -time.Hour)
	v, how, err := Fetch(t.Context(), g, "k", Source[string]{
		Judge: func(string) Verdict { return Replace },
		Load:  func(context.Context, *string) (string, error) { return "new", nil },
	})
	if v != "new" || how != Loaded || err != nil {
		t.Errorf("%q, %s, %v", v, how, err)
	}
}

// One of its flights has corrected the estimate by the time the others ask.
func TestGetManyAsksTheServerOfEachKeyThatSeemsTooOld(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, aging["short stale"]).knowClock()
	g := f.guards[0]
	mustGet(t, g, "k", returns("v"))
	raw, err := f.redis.Get(t.Context(), f.value("k")).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	j := loadSpec[string]{load: load{policy: &g.ordinary}, loader: unwanted[string](t)}.loadOf(g, "k", scope{}, nil)
	j.aged = true // by an estimate that another flight has mended since
	q := query[string]{guard: g, spec: loadSpec[string]{load: *j}, asked: g.clock.Now()}
	if v, how, _, err := q.awaitRebuild(t.Context(), j, raw); v != "v" || how != Hit || err != nil {
		t.Errorf("%q, %s, %v", v, how, err)
	}
}
