package rwlock

import (
	"crypto/rand"
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/replay"
)

// replayed is a lock on which runs of proof/model/rwlock.pml are replayed.
type replayed struct {
	*replay.Queued
	lock   queue.Calls
	fences replay.Names     // of the model, by those of Redis
	had    map[string]int64 // the fence that each caller has had
	next   string           // the fence that the model's state has after the step
}

func newReplayed(t *testing.T) func([]replay.Step, replay.Edit) replay.World {
	return func(run []replay.Step, edit replay.Edit) replay.World {
		l := rw.At(rw.Protocol(), "{"+rand.Text()+"}")
		return &replayed{
			Queued: replay.NewQueued(t, shared.Client(t), l, run, edit), lock: l, fences: make(replay.Names), had: make(map[string]int64),
		}
	}
}

// modeOf says how a caller asks: in the runs that were drawn, the first two write.
func modeOf(caller string) any {
	if caller < "2" {
		return rw.Writing.Arg()
	}
	return rw.Reading.Arg()
}

func (w *replayed) fence() int64 {
	n, _ := strconv.ParseInt(w.Field("fence"), 10, 64) // absent: none
	return n
}

func (w *replayed) Do(step replay.Step) {
	w.next = step.State["fence"]
	caller, answer := step.Arg(1), step.Arg(2)
	if caller == "" {
		return
	}
	switch step.Do[0] {
	case "acquire", "late_acquire":
		w.Ask(caller, modeOf(caller), answer)
	case "hear":
		w.Hear(caller)
	case "work":
		w.had[caller] = w.fence()
	case "leave", "release", "late_release":
		w.Release(caller, answer)
	case "downgrade", "late_downgrade":
		w.Run(toReader(w.lock, w.Token(caller), time.Hour, w.had[caller]))
	case "upgrade":
		n, err := w.Run(toWriter(w.lock, w.Token(caller), time.Hour, w.had[caller])).Int64()
		if err != nil || replay.Bit(n > 1) != answer {
			w.Wrong("upgrade.lua answers %d: %v", n, err)
		}
	case "pause", "expire":
		w.lapse(caller)
	}
}

// lapse ends the caller's lease, or its place in the queue.
func (w *replayed) lapse(caller string) {
	if w.Field("writer") == w.Token(caller) {
		if err := w.Redis.HSet(w.T.Context(), w.Calls.Keys[0], "deadline", 1).Err(); err != nil {
			w.T.Fatal(err)
		}
	}
	w.Score(w.Calls.Keys[1], caller, 1)
	w.Score(w.Calls.Keys[4], caller, 1)
}

func (w *replayed) State() map[string]string {
	keys, fence := w.Calls.Keys, "0"
	if f := w.fence(); f > 0 {
		if fence = w.next; !w.fences.Call(strconv.FormatInt(f, 10), fence) {
			w.Wrong("fence %s of the model is another one, or was", fence)
		}
	}
	return map[string]string{
		"writer": w.Caller(w.Field("writer")), "readers": w.Callers(keys[1]), "fence": fence, "writers": w.Count(keys[2]),
		"waiting": w.Callers(keys[3]), "gone": w.Callers(keys[5]),
	}
}

func TestRunsOfTheModelAreRunsOfTheScripts(t *testing.T) {
	t.Parallel()
	replay.Agrees(t, "rwlock", newReplayed(t))
	replay.Agrees(t, "plain", newReplayed(t))
	replay.Agrees(t, "change", newReplayed(t))
}

func TestReplaysFindMistakesInTheScripts(t *testing.T) {
	t.Parallel()
	replay.FindsEvery(t, "rwlock", some(
		"readers barge in past queued writers", "expired readers stay", "an expired writer stays", "dead waiters stay", "release hands nothing on",
		"a waiter that gives up stays in the queue", "readers are not served after a writer", "a token that has given up is not remembered",
	), newReplayed(t))
	replay.FindsEvery(t, "change", some("a downgrade admits nobody", "an upgrade jumps the queue"), newReplayed(t))
	replay.FindsEvery(t, "plain", some("the common writer comes in beside readers", "the common release hands nothing on"), newReplayed(t))
}

// some of the mistakes.
func some(names ...string) map[string]model.Mistake {
	all := make(map[string]model.Mistake)
	for _, name := range names {
		all[name] = mistakes[name]
	}
	return all
}
