package model

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/protocol"
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
		w.t.Fatal(err)
	}
	return reply
}

// fail remembers the failure until the model says that it is over.
func (w *loadWorld) fail(load int) {
	call := w.space.Fail(w.lease(), w.token(load), "failed")
	call.Keys[0] = w.lease()
	call.Args[2], call.Args[3], call.Args[4] = time.Hour.Milliseconds(), time.Hour.Milliseconds(), 1
	w.run(call)
}

func (w *loadWorld) do(step Step) {
	w.t.Helper()
	w.next = step.State["gen"]
	switch step.Do[0] {
	case "read":
		if got := w.cached(); got != step.Do[2] {
			w.t.Errorf("GET returns version %s", got)
		}
	case "acquire":
		w.answers(step, w.acquire(step.Number(2), step.Do[1]))
	case "fill":
		load := step.Number(2)
		w.filled[load] = step.Number(4)
		reply, err := w.run(w.space.Fill(w.value, w.filling(w.token(load), w.acquired[load], step.Number(4)))).Text()
		if err != nil || !strings.EqualFold(reply, step.Do[5]) {
			w.t.Errorf("fill.lua returns %s: %v", reply, err)
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
func (w *loadWorld) answers(step Step, a protocol.Acquired) {
	w.t.Helper()
	want := map[string]protocol.Status{"VALUE": protocol.HasValue, "LEASE": protocol.Granted, "HELD": protocol.Held, "FAILED": protocol.Failed}
	if a.Status != want[step.Do[3]] {
		w.t.Errorf("acquire.lua answers %s", a.Status)
	}
	switch a.Status {
	case protocol.HasValue:
		if got := w.version(a.Value); got != step.Do[4] {
			w.t.Errorf("acquire.lua returns version %s", got)
		}
	case protocol.Granted:
		w.acquired[step.Number(2)] = a.Generation
		w.call(a.Generation, step.Do[4])
	case protocol.Held:
		w.call(a.Generation, step.Do[4])
	}
}

func (w *loadWorld) state() map[string]string {
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
		"value": w.cached(), "token": strconv.Itoa(w.numbers[fields["token"]]), "gen": gen, "stands": bit(deadline > 1),
		"failed": bit(fields["token"] == "" && fields["failed"] != ""), "inbox": strconv.Itoa(inboxes),
	}
}

// gets is how many Gets an instance of the drawn runs makes.
const gets = 2

func TestRunsOfTheModelOfLoadsAreRunsOfTheScripts(t *testing.T) {
	t.Parallel()
	for _, run := range drawn(t, "load") {
		replay(t, run, &loadWorld{scriptWorld: newScriptWorld(t), filled: make(map[int]int)})
	}
}
