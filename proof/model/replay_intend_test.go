package model

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/replay"
)

// intendWorld replays runs of intend.pml, about a key.
type intendWorld struct {
	*scriptWorld
	was  map[string]string // the state of the model before the step
	next string            // the generation that it has after it
}

func newIntendWorld(t *testing.T) func([]replay.Step, replay.Edit) replay.World {
	return func(_ []replay.Step, edit replay.Edit) replay.World {
		w := &intendWorld{scriptWorld: newScriptWorld(t, edit)}
		w.space.LeaseTTL = 10 * time.Minute // intents end before entries do
		return w
	}
}

func (w *intendWorld) store(version int) {
	a, err := protocol.ParseAcquired(w.run(w.space.Acquire(w.value, protocol.Request{Token: w.token(0), Take: true})))
	if err != nil {
		w.Wrong("acquire.lua: %v", err)
	}
	w.run(w.space.Fill(w.value, w.filling(w.token(0), a.Generation, version)))
}

func (w *intendWorld) intents() string { return w.value + ":until" }

// end lets the time of an intent be over.
func (w *intendWorld) end(transaction string) {
	w.runs(w.rdb.ZAddXX(w.ctx, w.intents(), redis.Z{Score: 1, Member: transaction}))
}

// drop removes what ends with an intent, as its TTL does.
func (w *intendWorld) drop(transaction int) {
	for name, key := range map[string]string{"ends": w.value, "mark": protocol.LeaseKey(w.value)} {
		if bits, _ := strconv.Atoi(w.was[name]); bits&(1<<transaction) != 0 {
			w.runs(w.rdb.Del(w.ctx, key))
		}
	}
}

func (w *intendWorld) Do(step replay.Step) {
	w.next = step.State["gen"]
	switch step.Do[0] {
	case "cached":
		w.store(step.Number(1))
	case "intend", "again", "late_intend":
		w.run(w.space.Intend(w.value, step.Do[1], w.space.IntentTTL(), "notice"))
	case "done", "late_done":
		w.run(w.space.Done(w.value, step.Do[1], "notice"))
	case "late_renew":
		call := w.space.RenewIntend(w.value, step.Do[1], w.space.IntentTTL())
		if n, err := w.run(&call).Int(); err != nil || n != 1 {
			w.Wrong("renew_intend.lua answers %d: %v", n, err)
		}
	case "acquire":
		w.acquire(step.Number(1))
	case "fill":
		load := step.Number(1)
		w.run(w.space.Fill(w.value, w.filling(w.token(load+1), w.acquired[load], step.Number(2))))
	case "read":
		if got := w.cached(); got != step.Do[1] {
			w.Wrong("GET returns version %s", got)
		}
	case "expire":
		w.end(step.Do[1])
	case "drop":
		w.drop(step.Number(1))
	case "gone":
		w.end(step.Do[1])
		w.drop(step.Number(1))
	case "evict":
		w.runs(w.rdb.ZRem(w.ctx, w.intents(), "0"))
	}
	if step.State != nil {
		w.was = step.State
	}
}

func (w *intendWorld) acquire(load int) {
	a, err := protocol.ParseAcquired(w.run(w.space.Acquire(w.value, protocol.Request{Token: w.token(load + 1), Take: true})))
	if err != nil || a.Status != protocol.Granted {
		w.Wrong("acquire.lua answers %s: %v", a.Status, err)
	}
	w.acquired[load] = a.Generation
}

// ends reports whether the entry ends with an intent. Its TTL says so, and a mark for local tiers.
func (w *intendWorld) ends() bool {
	raw, _ := w.rdb.Get(w.ctx, w.value).Bytes() // absent: empty
	if len(raw) == 0 {
		return false
	}
	entry, err := protocol.DecodeEntry(replayed, raw)
	left := w.rdb.PTTL(w.ctx, w.value).Val()
	if soon := left < time.Hour*9/10; err != nil || entry.Ends != soon {
		w.Wrong("the entry lives for %s, and its mark says %t: %v", left, entry.Ends, err)
	}
	return entry.Ends
}

func (w *intendWorld) State() map[string]string {
	lease, until := w.hash(protocol.LeaseKey(w.value)), 0
	gen := "0"
	if lease["generation"] != "" {
		w.call(lease["generation"], w.next)
		gen = w.next
	}
	for _, intent := range w.rdb.ZRangeWithScores(w.ctx, w.intents(), 0, -1).Val() {
		if n, err := strconv.Atoi(intent.Member.(string)); err == nil && intent.Score > 1 {
			until |= 1 << n
		}
	}
	return map[string]string{
		"value": w.cached(), "gen": gen, "until": strconv.Itoa(until), "bounded": replay.Bit(w.ends()), "marked": replay.Bit(lease["until"] != ""),
	}
}

// intendRuns have what the state says of lives in other words.
func intendRuns(world func([]replay.Step, replay.Edit) replay.World) func([]replay.Step, replay.Edit) replay.World {
	return func(run []replay.Step, edit replay.Edit) replay.World {
		for _, step := range run {
			if s := step.State; s != nil {
				s["bounded"], s["marked"] = replay.Bit(s["ends"] != "0"), replay.Bit(s["mark"] != "0")
			}
		}
		return world(run, edit)
	}
}

func TestRunsOfTheModelOfIntentsAreRunsOfTheScripts(t *testing.T) {
	t.Parallel()
	replay.Agrees(t, "intend", intendRuns(newIntendWorld(t)))
	replay.Agrees(t, "forgotten", intendRuns(newIntendWorld(t)))
}

func TestReplaysOfIntentsFindMistakesInTheScripts(t *testing.T) {
	t.Parallel()
	replay.FindsEvery(t, "intend", map[string]model.Mistake{
		"an intent leaves values as they are":        {"if outlasts(key) then", "if false then"},
		"an intent leaves leases as they are":        {"redis.pcall('HSET', key, 'until', 1)", "1"},
		"what is stored does not end with an intent": {"'PX', math.min(ttl, limit or ttl))", "'PX', ttl)"},
		"local tiers may keep it":                    {"(ends and 85 or 0)", "0"},
		"done ends no intent":                        {"redis.pcall('ZREM', KEYS[1], ARGV[1])", ""},
		"done removes nothing":                       {"return forget(ARGV[2], ARGV[3])", "return 0"},
		"what an intent leaves at its end stays":     {"    forget()\n    limit", "    limit"},
	}, intendRuns(newIntendWorld(t)))
	replay.FindsEvery(t, "forgotten", map[string]model.Mistake{
		"a lease is filled though no intent is known": {"or lease['until'] and not limit then", "then"},
	}, intendRuns(newIntendWorld(t)))
}
