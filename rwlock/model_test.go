package rwlock

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/testing/model"
)

// The model, see package model, which says what callers do; model_check_test.go says what has to be true then.

const (
	modelSteps  = 400
	modelActors = 7 // at most
)

// world is one run of the model.
type world struct {
	*model.Queued
	lock queue.Calls

	fence  int64                     // the largest so far
	phases map[string]map[int64]bool // the writers' turns that each queued reader has seen
}

// player plays the model.
func player(t *testing.T) model.Play {
	t.Helper()
	rdb := shared.Client(t)
	return func(seed uint64, edit func(string) string) string {
		l := rw.At(rw.Compile(func(source string) string { return model.Modelled(edit(source)) }), "{model-"+rand.Text()+"}")
		w := &world{Queued: model.NewQueued(rdb, seed, l, modelActors), lock: l, phases: make(map[string]map[int64]bool)}
		w.Arrive, w.Change, w.Compare = w.arrive, w.change, w.compare
		w.Held = func(s model.Snapshot) map[string]int64 { return snapshot{s}.held() }
		return w.PlayOut(seed, modelSteps)
	}
}

func writes(a *model.Actor) bool { return a.As == rw.Writing.Arg() }

func (w *world) arrive(a *model.Actor) {
	m := rw.Reading
	if w.Chance(40) {
		m = rw.Writing
		if w.Chance(50) {
			a.Arrived = w.Arrivals.Waited(a.Token)
		}
	}
	a.As, a.About = m.Arg(), rw.InboxKey(w.Keys[0], m, a.Token)
}

// change makes a writer a reader, and the other way round.
func (w *world) change(a *model.Actor) {
	if writes(a) {
		a.As = rw.Reading.Arg() // also when the request is lost
		w.SendFor(a, "downgrades", toReader(w.lock, a.Token, ms(a.TTL), a.Fence), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int(); n == queue.Done {
				a.Until = sent + a.TTL
			}
		}, nil)
		return
	}
	w.SendFor(a, "upgrades", toWriter(w.lock, a.Token, ms(a.TTL), a.Fence), func(cmd *redis.Cmd, sent int64) {
		if n, _ := cmd.Int64(); n > queue.Done {
			a.As, a.Fence, a.Until = rw.Writing.Arg(), n, sent+a.TTL
		}
	}, nil)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func TestModelFindsNoInterleavingThatBreaksAPromise(t *testing.T) {
	t.Parallel()
	player(t).Expect(t, 2)
}

func TestADeadWaiterHoldsUpNobodyForLongerThanItsTTLWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	model.SetBack(t, shared.Client(t), rw.At(rw.Compile(model.Modelled), "{model-"+rand.Text()+"}"), rw.Writing.Arg())
}
