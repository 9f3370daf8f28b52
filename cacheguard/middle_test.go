package cacheguard

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
)

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
				if err := before.Run(t.Context(), m.Redis).Err(); err != nil {
					t.Fatal(err)
				}
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
