package model

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/replay"
)

// updateWorld replays runs of update.pml.
type updateWorld struct {
	*scriptWorld
	puts   bool
	locked bool // the lock is taken and given up in the same steps
	locks  *queue.Scripts
	proof  map[int]string // the generation that each writer has to find
	wrote  map[int]int    // the version that it has written
	next   string         // the generation that the model's state has after the step
}

// Writers and loads are numbered separately in the model.
func writerOf(n int) int { return n + 1 }
func loadOf(n int) int   { return n + 100 }

func newUpdateWorld(t *testing.T, puts, locked bool) func([]replay.Step, replay.Edit) replay.World {
	locks := rw.Compile(func(source string) string { return source })
	return func(_ []replay.Step, edit replay.Edit) replay.World {
		return &updateWorld{
			scriptWorld: newScriptWorld(t, edit), puts: puts, locked: locked, locks: locks, proof: make(map[int]string), wrote: make(map[int]int),
		}
	}
}

func (w *updateWorld) lease() string  { return protocol.LeaseKey(w.value) }
func (w *updateWorld) intent() string { return protocol.IntentKey(w.value) }

// lock returns the lock of a writer, who has taken it one step earlier in the model.
func (w *updateWorld) lock(writer int) queue.Calls {
	base := w.value + ":" + w.token(writerOf(writer))
	keys := []string{base}
	for range rw.Keys - 1 {
		keys = append(keys, keys[len(keys)-1]+"+")
	}
	return queue.Calls{Scripts: w.locks, Keys: keys}
}

func (w *updateWorld) begin(writer int) {
	token, lasting := w.token(writerOf(writer)), time.Duration(0)
	if w.puts {
		lasting = time.Hour
	}
	switch {
	case w.locked:
		ask := w.lock(writer).Asking(token, "w", time.Hour, time.Hour, queue.Unlimited, "", 0)
		call := w.space.LockUpdate(ask, w.value, token, "notice", lasting)
		fence, err := w.run(&call).Int64()
		if w.proof[writer] = protocol.GenerationOf(token, fence); err != nil {
			w.Wrong("lock_update.lua: %v", err)
		}
	case w.puts:
		generation, err := w.run(w.space.BeginUpdate(w.value, token, "notice", lasting)).Text()
		if w.proof[writer] == "" { // else it is a late copy, whose answer nobody reads
			w.proof[writer] = generation
		}
		if err != nil {
			w.Wrong("begin_update.lua: %v", err)
		}
	default:
		w.run(w.space.BeginUpdate(w.value, token, "notice", 0))
	}
}

func (w *updateWorld) end(writer, version int) {
	token := w.token(writerOf(writer))
	f := w.filling(token, w.proof[writer], version)
	release := w.lock(writer).Releasing(token, 0, false)
	var call script.Call
	switch put := w.puts && version > 0; {
	case put && w.locked:
		call = w.space.UnlockUpdate(release, w.value, token, "notice", time.Minute, f)
	case put:
		call = *w.space.EndUpdate(w.value, token, "notice", f)
	case w.locked:
		call = w.space.UnlockUpdate(release, w.value, token, "notice", 0, protocol.Filling{})
	default:
		call = *w.space.EndUpdate(w.value, token, "notice", protocol.Filling{})
	}
	w.run(&call)
}

// expire lets the time of an intent be over.
func (w *updateWorld) expire(writer int) {
	field := "writer:" + w.token(writerOf(writer))
	if w.hash(w.intent())[field] != "" {
		w.runs(w.rdb.HSet(w.ctx, w.intent(), field, "1 1"))
	}
}

func (w *updateWorld) acquire(load int, want string) {
	status := map[string]protocol.Status{
		"VALUE": protocol.HasValue, "LEASE": protocol.Granted, "HELD": protocol.Held, "WRITING": protocol.Writing,
	}
	a, err := protocol.ParseAcquired(w.run(w.space.Acquire(w.value, protocol.Request{Token: w.token(loadOf(load)), Take: true, Inbox: "i"})))
	if err != nil || a.Status != status[want] {
		w.Wrong("acquire.lua answers %s: %v", a.Status, err)
	}
	if a.Status == protocol.Granted {
		w.acquired[load] = a.Generation
	}
}

func (w *updateWorld) Do(step replay.Step) {
	w.next = step.State["gen"]
	switch step.Do[0] {
	case "begin", "late_begin":
		w.begin(step.Number(1))
	case "commit":
		w.wrote[step.Number(1)] = step.Number(2)
	case "end", "late_end", "late_put":
		w.end(step.Number(1), w.wrote[step.Number(1)])
	case "late_renew":
		call := w.space.RenewUpdate(w.value, w.token(writerOf(0)))
		w.run(&call)
	case "acquire":
		w.acquire(step.Number(1), step.Do[2])
	case "fill":
		load := step.Number(1)
		reply, err := w.run(w.space.Fill(w.value, w.filling(w.token(loadOf(load)), w.acquired[load], step.Number(2)))).Text()
		if err != nil || !strings.EqualFold(reply, step.Do[3]) {
			w.Wrong("fill.lua returns %s: %v", reply, err)
		}
	case "invalidate":
		w.run(w.space.Invalidate(w.value, "notice"))
	case "expire", "lose_intent":
		w.expire(step.Number(1))
	case "lose_intents":
		w.runs(w.rdb.Del(w.ctx, w.intent()))
	case "evict":
		w.runs(w.rdb.Del(w.ctx, w.lease()))
	}
}

func (w *updateWorld) State() map[string]string {
	fields := w.hash(w.lease())
	gen := "0"
	if fields["generation"] != "" {
		w.call(fields["generation"], w.next)
		gen = w.next
	}
	standing := 0
	for name, stands := range w.hash(w.intent()) {
		token, is := strings.CutPrefix(name, "writer:")
		deadline, _, _ := strings.Cut(stands, " ")
		if is && len(deadline) > 1 {
			standing |= 1 << (w.numbers[token] - 1)
		}
	}
	return map[string]string{
		"value": w.cached(), "gen": gen, "taken": replay.Bit(fields["token"] != ""), "intents": strconv.Itoa(standing),
	}
}

func TestRunsOfTheModelOfUpdatesAreRunsOfTheScripts(t *testing.T) {
	t.Parallel()
	replay.Agrees(t, "update", newUpdateWorld(t, false, false))
	replay.Agrees(t, "put", newUpdateWorld(t, true, false))
}

func TestRunsOfTheModelOfUpdatesAreRunsOfTheScriptsThatTakeTheLockToo(t *testing.T) {
	t.Parallel()
	replay.Agrees(t, "locked", newUpdateWorld(t, false, true))
	replay.Agrees(t, "lockedput", newUpdateWorld(t, true, true))
}

func TestReplaysOfUpdatesFindMistakesInTheScripts(t *testing.T) {
	t.Parallel()
	replay.FindsEvery(t, "update", map[string]model.Mistake{
		"loads do not wait for a writer":  {"if ends > 0 then", "if false then"},
		"an end leaves its intent":        {"redis.call('HDEL', KEYS[1], 'writer:' .. ARGV[1], 'holder:' .. ARGV[1])", ""},
		"an update removes nothing":       {"forget(ARGV[3], ARGV[4])", ""},
		"an end removes nothing":          {"forget(ARGV[2], ARGV[3])", ""},
		"an end ends the others' intents": {"if left <= 0 then", "if true then"},
	}, newUpdateWorld(t, false, false))
	replay.FindsEvery(t, "put", map[string]model.Mistake{
		"a put does not look at its generation": {"lease.generation == ARGV[5] and", ""},
		"a put stores though another may write": {"if writers > 0 then", "if false then"},
		"a generation comes back":               {"ARGV[1] .. (ARGV[8] or time[1] .. string.sub('00000' .. time[2], -6))", "ARGV[1]"},
	}, newUpdateWorld(t, true, false))
}
