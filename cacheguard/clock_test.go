package cacheguard

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/serverclock"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
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
	expect.Each(t, aging, func(t *testing.T, _ string, cfg Config) {
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
			expect.Equal(t, "GetMany", fmt.Sprint(got, err), "map[a:a b:b c:c] <nil>")
			expect.Equal(t, "scripts after the first Get", proxy.Commands()["evalsha"]-asked, 0)
		}
	})
}

func TestAGetManyIsTheFirstToLearnThatTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	expect.Each(t, aging, func(t *testing.T, _ string, cfg Config) {
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
	f.refreshes("k", db)
	close(db.release)
}

func TestWhatAJudgeRejectsIsReplacedHoweverOldItSeems(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, aging["StaleFor"]).knowClock()
	g := f.guards[0]
	mustGet(t, g, "k", returns("old"))
	g.step("k", -time.Hour)
	expect.Returns(t, "new", Loaded, nil)(Fetch(t.Context(), g, "k", Source[string]{
		Judge: func(string) Verdict { return Replace },
		Load:  func(context.Context, *string) (string, error) { return "new", nil },
	}))
}

// One of its flights has corrected the estimate by the time the others ask.
func TestGetManyAsksTheServerOfEachKeyThatSeemsTooOld(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, aging["short stale"]).knowClock()
	g := f.guards[0]
	mustGet(t, g, "k", returns("v"))
	raw, err := f.redis.Get(t.Context(), f.value("k")).Bytes()
	expect.Must(t, err)
	j := loadSpec[string]{load: load{policy: &g.ordinary}, loader: unwanted[string](t)}.loadOf(g, "k", scope{}, nil)
	j.aged = true // by an estimate that another flight has mended since
	q := query[string]{guard: g, spec: loadSpec[string]{load: *j}, asked: g.clock.Now()}
	if v, how, _, err := q.awaitRebuild(t.Context(), j, raw); v != "v" || how != Hit || err != nil {
		t.Errorf("%q, %s, %v", v, how, err)
	}
}

// aMiddle is a script in whose middle the clock is set back.
type aMiddle struct {
	name   string
	before func(m *middleStage) []*script.Call // that have run
	call   func(m *middleStage) *script.Call
	source string         // of its script
	fields map[int]string // what has to be there afterwards: by the place of a key, a field or a member
	early  int            // a key that loses what it has if it gets its TTL first
}

const aMiddlesText = "value that is long enough to be an entry's"

// middleStage makes calls for a key.
type middleStage struct {
	*Guard
	key, at string
}

func (m *middleStage) intend() *script.Call {
	return m.keys.Intend(m.at, "intent", m.keys.IntentTTL(), "")
}

func (m *middleStage) acquire() *script.Call {
	return m.keys.Acquire(m.at, protocol.Request{Token: "token", Take: true, Unfit: []byte(aMiddlesText)})
}

func (m *middleStage) begin() *script.Call { return m.keys.BeginUpdate(m.at, "token", "", time.Hour) }

func (m *middleStage) store() *script.Call {
	return &script.Call{Script: script.Command("set"), Keys: []string{m.at}, Args: []any{aMiddlesText, "px", time.Hour.Milliseconds()}}
}

func (m *middleStage) make() *script.Call {
	key := m.epochs.Key(epoch.OfTag("tag"), 0)
	return &script.Call{Script: script.Command("set"), Keys: []string{key}, Args: []any{"12345678", "px", time.Hour.Milliseconds()}}
}

func (m *middleStage) intendTag() *script.Call {
	return m.epochs.Intend(epoch.OfTag("tag"), 0, "intent", time.Minute, "")
}

func ran(all ...func(*middleStage) *script.Call) func(*middleStage) []*script.Call {
	return func(m *middleStage) (made []*script.Call) {
		for _, call := range all {
			made = append(made, call(m))
		}
		return made
	}
}

var middles = []aMiddle{
	{name: "a lease", before: ran(), call: (*middleStage).acquire, source: "acquire", fields: map[int]string{1: "generation"}},
	{
		name: "a lease while an intent stands", before: ran((*middleStage).intend), call: (*middleStage).acquire, source: "acquire",
		fields: map[int]string{1: "until", 3: "intent"}, early: 3,
	},
	{
		name: "a renewal", before: ran((*middleStage).acquire), source: "renew", fields: map[int]string{0: "generation"},
		call: func(m *middleStage) *script.Call { c := m.keys.Renew(m.at, "token"); return &c },
	},
	{
		name: "an intent", before: ran((*middleStage).store, (*middleStage).acquire), call: (*middleStage).intend, source: "intend",
		fields: map[int]string{0: "intent", 1: "until", 6: ""}, early: 1,
	},
	{
		name: "the renewal of an intent", before: ran((*middleStage).intend), source: "renew_intend", fields: map[int]string{0: "intent"},
		call: func(m *middleStage) *script.Call {
			c := m.keys.RenewIntend(m.at, "intent", m.keys.IntentTTL())
			return &c
		},
	},
	{name: "an Update", before: ran(), call: (*middleStage).begin, source: "begin_update", fields: map[int]string{0: "writer:token", 2: "generation"}},
	{
		name: "an Update while an intent stands", before: ran((*middleStage).intend), call: (*middleStage).begin, source: "begin_update",
		fields: map[int]string{0: "writer:token", 1: "intent", 2: "until"}, early: 1,
	},
	{
		name: "the renewal of an Update", before: ran((*middleStage).begin), source: "renew_update", fields: map[int]string{0: "writer:token"},
		call: func(m *middleStage) *script.Call { c := m.keys.RenewUpdate(m.at, "token"); return &c },
	},
	{name: "an intent on a tag", before: ran((*middleStage).make), call: (*middleStage).intendTag, source: "intend_tag", fields: map[int]string{0: "", 2: "intent"}},
	{
		name: "the renewal of an intent on a tag", before: ran((*middleStage).make, (*middleStage).intendTag), source: "intend_tag", fields: map[int]string{0: "", 2: "intent"},
		call: func(m *middleStage) *script.Call {
			c := m.epochs.RenewIntend(epoch.OfTag("tag"), 0, "intent", time.Hour)
			return &c
		},
	},
}

// has reports whether there is a field of a hash, a member of a set, or any value.
func has(ctx context.Context, rdb *redis.Client, key, field string) bool {
	switch rdb.Type(ctx, key).Val() {
	case "hash":
		return rdb.HExists(ctx, key, field).Val()
	case "zset":
		return slices.ContainsFunc(rdb.ZRange(ctx, key, 0, -1).Val(), func(member string) bool { return strings.HasSuffix(member, field) })
	case "string":
		return field == ""
	}
	return false
}

// When the clock is set back in the middle of a script, it loses nothing of what it writes, and every key has a TTL.
func TestWhatAScriptWritesIsKeptWhenTheClockIsSetBackInItsMiddle(t *testing.T) {
	t.Parallel()
	m := locktest.StartMiddle(t)
	for _, c := range middles {
		for _, mistake := range []bool{false, true} {
			m.SetClock(0)
			s := &middleStage{Guard: newGuard(t, m.Redis, Config{LeaseTTL: 5 * time.Second, Prefix: rand.Text()}), key: "k"}
			s.at = s.keys.ValueKey(s.key)
			for _, before := range c.before(s) {
				expect.Must(t, before.Run(t.Context(), m.Redis).Err())
			}
			call, source := c.call(s), protocol.Source(c.source)+epoch.Source(c.source)
			if mistake {
				source = "redis.call('PEXPIRE', KEYS[" + string(rune('1'+c.early)) + "], 60000)\n" + source
			}
			call.Script = script.New(locktest.Pausing(source, source))
			m.Run(*call)
			kept := m.Lasting(call.Keys)
			for place, field := range c.fields {
				kept = kept && has(t.Context(), m.Redis, call.Keys[place], field)
			}
			if !mistake {
				expect.Equal(t, c.name+" is kept", kept, true)
			} else if len(c.before(s)) > 0 {
				expect.Equal(t, c.name+": a TTL that is set first is found", kept, false)
			}
		}
	}
}
