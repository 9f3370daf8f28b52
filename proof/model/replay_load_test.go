package model

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/replay"
)

// loadWorld replays runs of load.pml.
type loadWorld struct {
	*scriptWorld
	filled map[int]int // the version that each load has stored
	next   string      // the generation that the model's state has after the step
}

func (w *loadWorld) lease() string { return protocol.LeaseKey(w.value) }

func (w *loadWorld) acquire(load int, inbox string) protocol.Acquired {
	w.t.Helper()
	reply, err := protocol.ParseAcquired(w.run(w.space.Acquire(w.value, protocol.Request{Token: w.token(load), Take: true, Inbox: inbox})))
	if err != nil {
		w.Wrong("acquire.lua: %v", err)
	}
	return reply
}

// fail remembers the failure until the model says that it is over.
func (w *loadWorld) fail(load int) {
	call := w.space.Fail(w.lease(), w.token(load), "failed", protocol.LongestFailureMemory)
	call.Keys[0] = w.lease()
	call.Args[2], call.Args[3], call.Args[4] = time.Hour.Milliseconds(), time.Hour.Milliseconds(), 1
	w.run(call)
}

func (w *loadWorld) Do(step replay.Step) {
	w.t.Helper()
	w.next = step.State["gen"]
	switch step.Do[0] {
	case "read":
		if got := w.cached(); got != step.Do[2] {
			w.Wrong("GET returns version %s", got)
		}
	case "acquire":
		w.answers(step, w.acquire(step.Number(2), step.Do[1]))
	case "fill":
		load := step.Number(2)
		w.filled[load] = step.Number(4)
		reply, err := w.run(w.space.Fill(w.value, w.filling(w.token(load), w.acquired[load], step.Number(4)))).Text()
		if err != nil || !strings.EqualFold(reply, step.Do[5]) {
			w.Wrong("fill.lua returns %s: %v", reply, err)
		}
	case "release", "late_release":
		w.run(w.space.Release(w.value, w.token(step.Number(len(step.Do)-1))))
	case "fail", "late_fail":
		w.fail(step.Number(len(step.Do) - 1))
	case "invalidate", "late_invalidate":
		w.run(w.space.Invalidate(w.value, "notice"))
	case "late_acquire":
		load := step.Number(1)
		w.acquire(load, strconv.Itoa((load-1)/gets))
	case "late_fill":
		load := step.Number(1)
		w.run(w.space.Fill(w.value, w.filling(w.token(load), w.acquired[load], w.filled[load])))
	case "expire":
		w.runs(w.rdb.HSet(w.ctx, w.lease(), "deadline", 1))
	case "evict":
		w.runs(w.rdb.Del(w.ctx, w.lease()))
	case "evict_value":
		w.runs(w.rdb.Del(w.ctx, w.value))
	}
}

// answers compares the answer of acquire.lua with the model's.
func (w *loadWorld) answers(step replay.Step, a protocol.Acquired) {
	w.t.Helper()
	want := map[string]protocol.Status{"VALUE": protocol.HasValue, "LEASE": protocol.Granted, "HELD": protocol.Held, "FAILED": protocol.Failed}
	if a.Status != want[step.Do[3]] {
		w.Wrong("acquire.lua answers %s", a.Status)
	}
	switch a.Status {
	case protocol.HasValue:
		if got := w.version(a.Value); got != step.Do[4] {
			w.Wrong("acquire.lua returns version %s", got)
		}
	case protocol.Granted:
		w.acquired[step.Number(2)] = a.Generation
		w.call(a.Generation, step.Do[4])
	case protocol.Held:
		w.call(a.Generation, step.Do[4])
	}
}

func (w *loadWorld) State() map[string]string {
	w.t.Helper()
	fields := w.hash(w.lease())
	if fields["generation"] != "" {
		w.call(fields["generation"], w.next)
	}
	inboxes := 0
	for name := range fields {
		if at, ok := strings.CutPrefix(name, "inbox:"); ok {
			instance, _ := strconv.Atoi(at)
			inboxes |= 1 << instance
		}
	}
	deadline, _ := strconv.ParseInt(fields["deadline"], 10, 64)
	gen := "0"
	if len(fields) > 0 {
		gen = w.named[fields["generation"]]
	}
	return map[string]string{
		"value": w.cached(), "token": strconv.Itoa(w.numbers[fields["token"]]), "gen": gen, "stands": replay.Bit(deadline > 1),
		"failed": replay.Bit(fields["token"] == "" && fields["failed"] != ""), "inbox": strconv.Itoa(inboxes),
	}
}

// gets is how many Gets an instance of the drawn runs makes.
const gets = 2

func newLoadWorld(t *testing.T) func(run []replay.Step, edit replay.Edit) replay.World {
	return func(_ []replay.Step, edit replay.Edit) replay.World {
		return &loadWorld{scriptWorld: newScriptWorld(t, edit), filled: make(map[int]int)}
	}
}

func TestRunsOfTheModelOfLoadsAreRunsOfTheScripts(t *testing.T) {
	t.Parallel()
	replay.Agrees(t, "load", newLoadWorld(t))
}

func TestReplaysOfLoadsFindMistakesInTheScripts(t *testing.T) {
	t.Parallel()
	replay.FindsEvery(t, "load", map[string]model.Mistake{
		"a fill does not look at the generation": {"lease.generation ~= generation or", "lease.generation == '' or"},
		"a release does not look at the token":   {"~= ARGV[1] then", "== '' then"},
		"an invalidation leaves the lease":       {"gone[5 + i] = lease", "gone[5 + i] = nil"},
		"a caller that asks again gets nothing":  {"if h[1] == ARGV[1] then", "if false then"},
	}, newLoadWorld(t))
}
