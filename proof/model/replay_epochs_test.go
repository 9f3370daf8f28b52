package model

import (
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/replay"
)

const tag = "tag"

// epochGet is a Get of an instance.
type epochGet struct {
	epochs     *epoch.Epochs
	knows      bool // the tag, before the load
	reading    epoch.Reading
	holds      bool // what was read
	generation string
	stamp      protocol.Stamp
	refused    error
}

// epochsWorld replays runs of epochs.pml: Readings, as a Guard makes them, and the scripts.
type epochsWorld struct {
	*scriptWorld
	all  bool // everything is invalidated, else the tag
	link *send.Link
	gets map[string]*epochGet
	keys map[string]string // of the epochs, by their names in the model
	want map[string]string // the model's state after the step
}

// nothing is pending.
type nothing struct{}

func (nothing) Moment() uint64               { return 0 }
func (nothing) Quiet(uint64) bool            { return true }
func (nothing) Had(string, int, uint64) bool { return false }

func newEpochsWorld(t *testing.T, all bool) func([]replay.Step, replay.Edit) replay.World {
	return func(run []replay.Step, edit replay.Edit) replay.World {
		w := &epochsWorld{scriptWorld: newScriptWorld(t, edit), all: all, gets: make(map[string]*epochGet)}
		h := breaker.New(w.rdb, w.space.Prefix, time.Minute, nil)
		w.link = send.New(w.rdb, time.Minute, h)
		t.Cleanup(w.link.Close)
		newEpochs := func() *epoch.Epochs {
			return epoch.New(epoch.Config{
				Prefix: w.space.Prefix, Channel: w.space.Channel, Link: w.link, Breakers: h, Pending: nothing{}, Background: func(func()) bool { return true },
			})
		}
		for _, step := range run {
			switch step.Do[0] {
			case "begin":
				w.gets[step.Do[1]] = &epochGet{epochs: newEpochs()}
			case "ready":
				w.gets[step.Do[1]].knows = step.Do[2] == "1"
			}
		}
		e := newEpochs()
		w.gets[""] = &epochGet{epochs: e, knows: true}
		w.keys = map[string]string{"prefix": e.Key(epoch.All, 0), "tag": e.Key(epoch.OfTag(tag), 0), "any": e.Key(epoch.All, 0) + ":tags"}
		return w
	}
}

// begin begins the Reading of a Get, or of its wait.
func (w *epochsWorld) begin(g *epochGet) {
	var known []string
	if g.knows {
		known = []string{tag}
	}
	g.reading = g.epochs.Begin(replayed, w.value, "", known)
}

// look reads the value and the epochs in one request.
func (w *epochsWorld) look(g *epochGet) (value []byte) {
	read, err := w.link.Get(w.ctx, w.value, g.reading.Keys()...)
	if err == nil {
		err = read.Wait(w.ctx)
	}
	if err != nil {
		w.Wrong("GET: %v", err)
		return nil
	}
	g.reading.Take(read)
	return read.Raw
}

func (w *epochsWorld) judge(g *epochGet, raw []byte) bool {
	entry, err := protocol.DecodeEntry(replayed, raw)
	if err != nil {
		w.Wrong("the entry: %v", err)
	}
	g.reading.Compare(w.ctx, entry.Stamp)
	holds, redisErr, err := g.reading.Holds(w.ctx)
	if redisErr != nil || err != nil {
		w.Wrong("the epochs: %v, %v", redisErr, err)
	}
	return holds
}

func (w *epochsWorld) raw() []byte {
	raw, err := w.rdb.Get(w.ctx, w.value).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.t.Fatal(err)
	}
	return raw
}

// acquire takes the lease. The model's Gets do not look at the value again, whatever it is by then.
func (w *epochsWorld) acquire(g *epochGet, token int) {
	a, err := protocol.ParseAcquired(w.run(w.space.Acquire(w.value, protocol.Request{Token: w.token(token), Take: true, Unfit: w.raw()})))
	if err != nil || a.Status != protocol.Granted {
		w.Wrong("acquire.lua answers %s: %v", a.Status, err)
	}
	g.generation = a.Generation
}

// fill stores what was loaded, and returns whether it is stored. A load without a stamp gives up.
func (w *epochsWorld) fill(g *epochGet, token, version int) (stored bool) {
	if g.refused != nil {
		w.run(w.space.Release(w.value, w.token(token)))
		return false
	}
	f := w.filling(w.token(token), g.generation, version)
	entry := protocol.Entry{Kind: protocol.Raw, Payload: []byte(strconv.Itoa(version)), Stamp: g.stamp}
	f.Head, f.Tail = protocol.EncodeEntry(replayed, entry, f.Token)
	reply, err := w.run(w.space.Fill(w.value, f)).Text()
	if err != nil {
		w.Wrong("fill.lua: %v", err)
	}
	return reply == protocol.Stored
}

// cache stores a version from before the run.
func (w *epochsWorld) cache(version int) {
	g := w.gets[""]
	w.begin(g)
	w.look(g)
	g.reading.Prepare(w.ctx)
	g.reading.Ready(w.ctx)
	if version == 0 {
		return
	}
	w.acquire(g, 100)
	g.stamp, g.refused = g.reading.Stamp(w.ctx, []string{tag})
	w.fill(g, 100, version)
}

func (w *epochsWorld) Do(step replay.Step) {
	w.want = step.State
	var g *epochGet
	me := 0
	if len(step.Do) > 1 {
		g = w.gets[step.Do[1]]
		me = step.Number(1)
	}
	switch step.Do[0] {
	case "cached":
		w.cache(me)
	case "begin":
		w.begin(g)
	case "read":
		value := w.look(g)
		if got := w.version(value); got != step.Do[2] {
			w.Wrong("GET returns version %s", got)
		}
		g.holds = len(value) > 0 && w.judge(g, value)
	case "return", "acquire", "wait":
		if g.holds != (step.Do[0] == "return") {
			w.Wrong("what was read holds: %t", g.holds)
		}
		switch step.Do[0] {
		case "acquire":
			w.acquire(g, me)
		case "wait":
			g.knows = true
			w.begin(g)
			w.look(g)
		}
	case "hear":
		if raw := w.raw(); w.version(raw) != step.Do[2] || !w.judge(g, raw) {
			w.Wrong("the waiter does not get version %s", w.version(raw))
		}
	case "ready":
		g.reading.Prepare(w.ctx)
		g.reading.Ready(w.ctx)
	case "stamp":
		g.stamp, g.refused = g.reading.Stamp(w.ctx, []string{tag})
		if replay.Bit(g.refused == nil) != step.Do[2] {
			w.Wrong("the stamp: %v", g.refused)
		}
	case "fill":
		if stored := w.fill(g, me, step.Number(2)); replay.Bit(stored) != step.Do[3] {
			w.Wrong("stored: %t", stored)
		}
	default:
		w.trouble(step)
	}
}

// trouble is what is invalidated, lost or late.
func (w *epochsWorld) trouble(step replay.Step) {
	e := w.gets[""].epochs
	switch step.Do[0] {
	case "revoke", "late_revoke":
		name := epoch.OfTag(tag)
		if w.all {
			name = epoch.All
		}
		w.run(e.Revoke(name, 0, "notice"))
	case "late_make":
		keys := []string{w.keys["prefix"], w.keys["tag"], w.keys["any"]}
		for _, key := range keys {
			keys = append(keys, strings.Replace(key, "}:epoch", "}:epoch:until", 1)) // where the intents are
		}
		w.run(&script.Call{Script: script.New(epoch.Source("make")), Keys: keys, Args: []any{rand.Text(), time.Hour.Milliseconds()}})
	case "evict":
		w.runs(w.rdb.Del(w.ctx, w.keys[step.Do[1]]))
	}
}

// number is what the model calls an epoch, if that is the one it says.
func (w *epochsWorld) number(e protocol.Epoch, name string) string {
	switch {
	case e.IsZero():
		return "0"
	case w.named.Call(string(e[:]), w.want[name]):
		return w.want[name]
	}
	return "another one"
}

func (w *epochsWorld) State() map[string]string {
	s := map[string]string{"value": w.cached()}
	for name, key := range w.keys {
		raw, _ := w.rdb.Get(w.ctx, key).Bytes() // absent: none
		s[name] = w.number(protocol.EpochOf(raw), name)
	}
	if raw := w.raw(); len(raw) > 0 {
		entry, err := protocol.DecodeEntry(replayed, raw)
		if err != nil {
			w.Wrong("the entry: %v", err)
		}
		s["at_prefix"] = w.number(entry.Stamp.Prefix, "at_prefix")
		for _, e := range entry.Stamp.Tags.All() {
			s["at_tag"] = w.number(e, "at_tag")
		}
	}
	return s
}

func TestRunsOfTheModelOfEpochsAreRunsOfReadingsAndScripts(t *testing.T) {
	t.Parallel()
	replay.Agrees(t, "epochs", newEpochsWorld(t, false))
	replay.Agrees(t, "everything", newEpochsWorld(t, true))
}

func TestReplaysOfEpochsFindMistakesInTheScripts(t *testing.T) {
	t.Parallel()
	replay.FindsEvery(t, "epochs", map[string]model.Mistake{
		"a tag takes the epoch of all tags along no more": {"redis.call('DEL', unpack(KEYS))", "redis.call('DEL', KEYS[1])"},
		"make leaves no epoch behind":                     {"redis.call('SET', key, epoch, 'PX'", "redis.call('SET', key .. 'x', epoch, 'PX'"},
	}, newEpochsWorld(t, false))
}
