package mutex

import (
	"crypto/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/replay"
)

// replayed is a lock on which runs of proof/model/mutex.pml are replayed.
type replayed struct {
	replay.Verdict
	t       *testing.T
	edit    replay.Edit
	rdb     *redis.Client
	callers map[string]*calls // of the callers, by their number in the model
	key     string
	fences  replay.Names // of the model, by those of Redis
	heard   *redis.PubSub
	grants  map[string]int64 // the fence of the last grant that was told, by id
	next    string           // the fence that the model's state has after the step
}

func newReplayed(t *testing.T) func([]replay.Step, replay.Edit) replay.World {
	return func(_ []replay.Step, edit replay.Edit) replay.World {
		rdb := shared.Client(t)
		w := &replayed{
			t: t, edit: edit, rdb: rdb, key: "{" + rand.Text() + "}", callers: make(map[string]*calls), fences: make(replay.Names),
			grants: make(map[string]int64),
		}
		w.heard = rdb.Subscribe(t.Context(), w.key)
		t.Cleanup(func() { _ = w.heard.Close() })
		if _, err := w.heard.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w
	}
}

func (w *replayed) of(caller string) *calls {
	if w.callers[caller] == nil {
		c := newCalls(w.t.Context(), w.key, caller)
		w.callers[caller] = &c
	}
	return w.callers[caller]
}

// caller is whose id that is; 255: nobody's.
func (w *replayed) caller(id string) string {
	for caller, c := range w.callers {
		if c.id == id {
			return caller
		}
	}
	return "255"
}

func (w *replayed) run(call script.Call) *redis.Cmd {
	call.Script = w.edit(call.Script)
	cmd := call.Run(w.t.Context(), w.rdb)
	if cmd.Err() != nil {
		w.Wrong("Redis: %v", cmd.Err())
	}
	return cmd
}

func (w *replayed) field(name string) string {
	text, _ := w.rdb.HGet(w.t.Context(), w.key, name).Result() // absent: empty
	return text
}

func (w *replayed) set(name, text string) {
	if err := w.rdb.HSet(w.t.Context(), w.key, name, text).Err(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *replayed) lock(caller string) queue.Answer {
	answer, err := parseAnswer(w.run(w.of(caller).asking(time.Hour, time.Hour, queue.Unlimited, w.key)), time.Hour)
	if err != nil {
		w.Wrong("lock.lua: %v", err)
	}
	return answer
}

// remembers reports whether the run has late copies: then, callers say that some may come.
func remembers(s map[string]string) bool { return s["gone"] != "0" }

func (w *replayed) unlock(caller string, lost bool) int {
	n, err := w.run(w.of(caller).releasing(successor{}, lost)).Int()
	if err != nil {
		w.Wrong("unlock.lua: %v", err)
	}
	return n
}

func (w *replayed) Do(step replay.Step) {
	w.next = step.State["fence"]
	caller := step.Arg(1)
	switch step.Do[0] {
	case "lock":
		if a := w.lock(caller); replay.Bit(a.Granted) != step.Do[2] {
			w.Wrong("lock.lua answers %+v", a)
		}
	case "late_lock":
		w.lock(caller)
	case "hear":
		w.hear(w.of(caller).id, step.Do[2])
	case "leave":
		w.unlock(caller, remembers(step.State))
	case "unlock", "late_unlock":
		if n := w.unlock(caller, remembers(step.State)); strconv.Itoa(n) != step.Do[2] {
			w.Wrong("unlock.lua answers %d", n)
		}
	case "expire":
		w.set("lease", "1 1 1 "+w.key)
	case "dead":
		field := "waiter:" + w.of(caller).id
		_, rest, _ := strings.Cut(w.field(field), " ")
		w.set(field, "1 "+rest)
	}
}

// hear waits for a grant with that fence to reach the caller.
func (w *replayed) hear(id, number string) {
	for w.fences[strconv.FormatInt(w.grants[id], 10)] != number {
		m, err := w.heard.ReceiveTimeout(w.t.Context(), 20*time.Second)
		if err != nil {
			w.Wrong("nobody got the message of the grant: %v", err)
			return
		}
		if m, ok := m.(*redis.Message); ok {
			_, body, _ := strings.Cut(m.Payload, ":")
			if len(body) >= len(id) && body[:len(id)] == id {
				w.grants[id], _ = parseGrant(body[len(id):], 0)
			}
		}
	}
}

func (w *replayed) State() map[string]string {
	ctx, keys := w.t.Context(), keysOf(w.key)
	fence := "0"
	if f := w.field("fence"); f != "" {
		if fence = w.next; !w.fences.Call(f, fence) {
			w.Wrong("fence %s of the model is another one, or was", fence)
		}
	}
	gone := 0
	for _, id := range w.rdb.ZRange(ctx, keys[2], 0, -1).Val() {
		n, _ := strconv.Atoi(w.caller(id))
		gone |= 1 << n
	}
	token := w.field("token")
	return map[string]string{
		"token": w.caller(token), "fence": fence, "stands": replay.Bit(token != "" && !strings.HasPrefix(w.field("lease"), "1 1 1 ")),
		"queue": strconv.FormatInt(w.rdb.ZCard(ctx, keys[1]).Val(), 10), "gone": strconv.Itoa(gone), "last": w.caller(w.field("last")),
	}
}

func TestRunsOfTheModelAreRunsOfTheScripts(t *testing.T) {
	t.Parallel()
	replay.Agrees(t, "mutex", newReplayed(t))
	replay.Agrees(t, "plain", newReplayed(t))
}

func TestReplaysFindMistakesInTheScripts(t *testing.T) {
	t.Parallel()
	replay.FindsEvery(t, "mutex", map[string]model.Mistake{
		"unlock does not look at the token":         mistakes["unlock does not look at the token"],
		"a grant goes to a dead waiter":             mistakes["a grant goes to a dead waiter"],
		"the last in the queue is first":            mistakes["the last in the queue is first"],
		"a waiter that gives up stays":              mistakes["a waiter that gives up stays in the queue"],
		"unlock hands nothing on":                   {"if s.ticket ~= 0 or successor then", "if successor then"},
		"an id that has given up gets the lock":     {"if late(id) then", "if false then"},
		"an id that has given up is not remembered": mistakes["an id that has given up is not remembered"],
	}, newReplayed(t))
	replay.FindsEvery(t, "plain", map[string]model.Mistake{
		"the common unlock leaves the queue alone": mistakes["the common unlock does not look at the queue"],
	}, newReplayed(t))
}
