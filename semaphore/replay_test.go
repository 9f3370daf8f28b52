package semaphore

import (
	"crypto/rand"
	"testing"

	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/replay"
)

// replayed is a semaphore on which runs of proof/model/semaphore.pml are replayed.
type replayed struct{ *replay.Queued }

func newReplayed(t *testing.T) func([]replay.Step, replay.Edit) replay.World {
	return func(run []replay.Step, edit replay.Edit) replay.World {
		return replayed{replay.NewQueued(t, shared.Client(t), callsAt(protocol, "{"+rand.Text()+"}"), run, edit)}
	}
}

// knows is how many a caller of the runs that were drawn knows of.
func knows(caller string) int {
	if caller == "0" {
		return 1
	}
	return 2
}

func (w replayed) Do(step replay.Step) {
	caller, answer := step.Arg(1), step.Arg(2)
	if caller == "" {
		return
	}
	switch step.Do[0] {
	case "acquire", "late_acquire":
		w.Ask(caller, knows(caller), answer)
	case "hear":
		w.Hear(caller)
	case "leave", "release", "late_release":
		w.Release(caller, answer)
	case "pause", "expire":
		w.Score(w.Calls.Keys[1], caller, 1) // its lease
		w.Score(w.Calls.Keys[3], caller, 1) // its place
	}
}

func (w replayed) State() map[string]string {
	keys := w.Calls.Keys
	return map[string]string{"holders": w.Callers(keys[1]), "queue": w.Count(keys[2]), "gone": w.Callers(keys[4])}
}

func TestRunsOfTheModelAreRunsOfTheScripts(t *testing.T) {
	t.Parallel()
	replay.Agrees(t, "semaphore", newReplayed(t))
}

func TestReplaysFindMistakesInTheScripts(t *testing.T) {
	t.Parallel()
	some := make(map[string]model.Mistake)
	for _, name := range []string{
		"one permit too many", "one too many is handed on", "a caller that asks passes the queue", "expired holders stay", "dead waiters stay",
		"a release hands nothing on", "a token that has given up is not remembered", "a token that has given up gets a permit",
	} {
		some[name] = mistakes[name]
	}
	replay.FindsEvery(t, "semaphore", some, newReplayed(t))
}
