package rwlock

import (
	"crypto/rand"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/testing/model"
)

// The model, see package model: model_actor_test.go says what actors do, model_check_test.go what has to be true then.

const (
	modelSteps  = 400
	modelActors = 7 // at most
)

// world is one run of the model.
type world struct {
	*model.World
	lock   lock
	actors []*actor
	tokens int

	gone     map[string]bool // the tokens that have given up, and were told so
	arrivals *model.Arrivals // of the writers

	now    snapshot
	fence  int64                     // the largest so far
	phases map[string]map[int64]bool // the writers' turns that each queued reader has seen
}

// player plays the model.
func player(t *testing.T) model.Play {
	t.Helper()
	rdb := shared.Client(t)
	return func(seed uint64, edit func(string) string) string {
		l := lockAt(compile(func(source string) string { return model.Modelled(edit(source)) }), "{model-"+rand.Text()+"}")
		w := &world{World: model.NewWorld(rdb, seed, l.Keys[0]), lock: l, gone: make(map[string]bool), phases: make(map[string]map[int64]bool)}
		w.Check = w.check
		w.arrivals = model.NewArrivals(w.World)
		for i := range 2 + w.Rand.IntN(modelActors-1) {
			w.actors = append(w.actors, &actor{name: i, inbox: w.Inboxes[i%len(w.Inboxes)]})
		}
		defer w.Clean(l.Keys...)
		w.Play(modelSteps, model.Deeds{
			Act: func() { w.act(w.actors[w.Rand.IntN(len(w.actors))]) }, Revoke: w.revoke, Leap: w.leap, Settle: w.settle,
		})
		return w.Verdict(seed)
	}
}

// leap has all trust suffer when the clock is set forward.
func (w *world) leap(by int64) {
	for _, a := range w.actors {
		a.heard -= by
		a.until -= by
	}
}

func (w *world) revoke() {
	for _, a := range w.actors {
		a.until, a.heard = 0, -queue.LongestGrace.Milliseconds() // that is what it is for; a message may be on its way
	}
	call := w.lock.Revoking(strconv.FormatUint(w.Rand.Uint64(), 10))
	w.Run(call, "")
	held := w.now.held()
	if w.Run(call, ""); len(w.now.held()) < len(held) {
		w.Wrong("a copy of a revoke has taken the lock from one of %v", held)
	}
}

func (w *world) send(a *actor, what string, call script.Call, heard func(cmd *redis.Cmd, sent int64), unheard func()) {
	w.Send(a.name, a.token, what, call, heard, unheard)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func TestModelFindsNoInterleavingThatBreaksAPromise(t *testing.T) {
	t.Parallel()
	player(t).Expect(t, 40)
}
