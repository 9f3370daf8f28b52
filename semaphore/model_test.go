package semaphore

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/testing/model"
)

// The model, see package model: actors do here what callers do; model_check_test.go says what has to be true then.

const (
	modelSteps  = 400
	modelActors = 9 // at most
)

// world is one run of the model.
type world struct {
	*model.World
	sem    queue.Calls
	actors []*actor
	tokens int
	most   int // permits, of the actors that know of the most

	gone     map[string]bool // the tokens that have given up, and were told so
	arrivals *model.Arrivals
	now      snapshot
}

type stage int

const (
	idle stage = iota
	waiting
	holding
)

// actor is a caller, with what it believes.
type actor struct {
	name    int
	inbox   string // of its process: some share one
	permits int    // that it knows of
	stage   stage
	token   string
	ttl     int64
	ticket  int64

	arrived int64
	fence   int64
	heard   int64 // waiting: when the last request was sent that was answered
	until   int64 // holding: the end of its trust
	leaves  int64 // when it waits no longer; 0: never
	lost    bool  // a request for it has no reply
	revoked bool  // it was, while it held
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// player plays the model.
func player(t *testing.T) model.Play {
	t.Helper()
	rdb := shared.Client(t)
	return func(seed uint64, edit func(string) string) string {
		s := callsAt(compile(func(source string) string { return model.Modelled(edit(source)) }), "{model-"+rand.Text()+"}")
		w := &world{World: model.NewWorld(rdb, seed, s.Keys[0]), sem: s, gone: make(map[string]bool)}
		w.Check = w.check
		w.arrivals = model.NewArrivals(w.World)
		permits, changes := 1+w.Rand.IntN(4), w.Chance(30)
		for i := range 2 + w.Rand.IntN(modelActors-1) {
			a := &actor{name: i, inbox: w.Inboxes[i%len(w.Inboxes)], permits: permits}
			if changes && i%2 == 1 {
				a.permits = 1 + w.Rand.IntN(4)
			}
			w.most = max(w.most, a.permits)
			w.actors = append(w.actors, a)
		}
		defer w.Clean(s.Keys...)
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
		a.revoked = a.revoked || a.stage == holding && w.now.holders()[a.token] > w.Clock()
		a.until, a.heard = 0, -queue.LongestGrace.Milliseconds() // that is what it is for; a message may be on its way
	}
	call := w.sem.Revoking(strconv.FormatUint(w.Rand.Uint64(), 10))
	w.Run(call, "")
	held := len(w.now.holders())
	if w.Run(call, ""); len(w.now.holders()) < held {
		w.Wrong("a copy of a revoke has taken permits")
	}
}

func (w *world) send(a *actor, what string, call script.Call, heard func(cmd *redis.Cmd, sent int64), unheard func()) {
	w.Send(a.name, a.token, what, call, heard, unheard)
}

func (w *world) act(a *actor) {
	switch {
	case a.stage == idle:
		w.begin(a)
	case w.Chance(4):
		w.Tell("%d crashes", a.name)
		a.stage = idle
	case a.stage == waiting:
		w.wait(a)
	case a.until <= w.Mono:
		w.Tell("%d has lost %s", a.name, a.token)
		w.finish(a)
	default:
		w.hold(a)
	}
}

func (w *world) begin(a *actor) {
	w.tokens++
	*a = actor{
		name: a.name, inbox: a.inbox, permits: a.permits, stage: waiting,
		token: fmt.Sprintf("t%d", w.tokens), ttl: 500 + w.Rand.Int64N(9500), heard: w.Mono,
	}
	if w.Chance(30) {
		a.arrived = w.arrivals.Waited(a.token)
	}
	if w.Chance(40) {
		a.leaves = w.Mono + w.Rand.Int64N(6000)
	}
	if w.ask(a, w.Chance(75)); a.stage == waiting && a.ticket == 0 {
		w.finish(a) // it did not want to wait
	}
}

// ask asks for a permit.
func (w *world) ask(a *actor, waits bool) {
	inbox := a.inbox
	if w.Chance(20) {
		inbox = ""
	}
	grace := time.Duration(0)
	if waits {
		grace = queue.Grace(ms(a.ttl))
	}
	patience := queue.Unlimited
	if a.leaves > 0 {
		patience = max(a.leaves-w.Mono, 0)
	}
	call := w.sem.Asking(a.token, a.permits, ms(a.ttl), grace, patience, inbox, a.arrived)
	w.send(a, fmt.Sprintf("asks for one of %d", a.permits), call, func(cmd *redis.Cmd, sent int64) {
		got, err := queue.ParseAsked(cmd)
		if err != nil || got.Left < 0 {
			w.Wrong("%+v, %v", got, err)
		}
		switch got.Status {
		case "held":
			a.stage, a.fence, a.until = holding, got.Fence, sent+a.ttl
		case "queued":
			a.ticket, a.heard = got.Ticket, sent
		}
	}, func() { a.lost = true })
}

func (w *world) wait(a *actor) {
	switch p := w.Rand.IntN(10); {
	case a.leaves > 0 && w.Mono >= a.leaves:
		w.finish(a)
	case p < 4:
		w.receive(a.inbox)
	case p < 7:
		w.send(a, "is alive", w.sem.Beating(a.token, a.ticket, queue.Grace(ms(a.ttl))), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int(); n > 0 {
				a.heard = sent
				return
			}
			w.ask(a, true)
		}, nil)
	case p < 9:
		w.ask(a, true)
	default:
		w.finish(a)
	}
}

// receive delivers the oldest message to a process, or loses it.
func (w *world) receive(inbox string) {
	key, body, ok := w.Receive(inbox)
	if !ok {
		return
	}
	for _, a := range w.actors {
		if a.stage != waiting || a.inbox != inbox || key != inboxKey(w.sem.Keys[0], a.token) {
			continue
		}
		fence, granted := queue.ParseGrant(body, a.ticket)
		granted = granted && (a.leaves == 0 || w.Mono < a.leaves)
		if trust := a.heard + queue.Grace(ms(a.ttl)).Milliseconds(); granted && w.Mono < trust {
			w.Tell("%d is told that it holds %s", a.name, a.token)
			a.stage, a.fence, a.until = holding, fence, trust
		}
	}
}

func (w *world) hold(a *actor) {
	switch p := w.Rand.IntN(10); {
	case p < 4:
		w.send(a, "renews", w.sem.Renewing(a.token, ms(a.ttl), a.fence), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int(); n == queue.Done {
				a.until = sent + a.ttl
			} else if a.until > w.Mono {
				w.Wrong("%s is lost while it is trusted", a.token)
			}
		}, nil)
	case p < 7:
		w.finish(a)
	}
}

// finish releases whatever the actor has, until that is known to have run.
func (w *world) finish(a *actor) {
	a.stage = idle
	for known, tries := false, 0; !known && tries < 20; tries++ {
		w.send(a, "releases", w.sem.Releasing(a.token, a.fence, a.lost), func(cmd *redis.Cmd, _ int64) {
			if n, _ := cmd.Int(); n == queue.Lost && a.revoked {
				w.Wrong("%s was revoked, and hears that it is lost", a.token)
			}
			known, w.gone[a.token] = true, true
			w.checkGone()
		}, func() {})
	}
}

func TestModelFindsNoInterleavingThatBreaksAPromise(t *testing.T) {
	t.Parallel()
	player(t).Expect(t, 60)
}

func TestModelFindsEveryMistakeThatIsPutIntoTheScripts(t *testing.T) {
	t.Parallel()
	player(t).ExpectToFind(t, map[string]model.Mistake{
		"one permit too many": {
			"if held < permits and (not queued", "if held <= permits and (not queued"},
		"one too many is handed on": {
			"held >= tonumber(string.match", "held > tonumber(string.match"},
		"who asks passes the queue": {
			"and (not queued or redis.call('ZCARD', queue) == 0)", ""},
		"permits handed on in one run are not counted": {
			"    held = held + 1\n", ""},
		"expired holders stay": {
			"redis.call('ZREMRANGEBYSCORE', holders", "redis.call('ZCOUNT', holders"},
		"dead waiters stay": {
			"redis.call('ZRANGEBYSCORE', alive,", "redis.call('ZRANGEBYSCORE', alive .. 'not',"},
		"a release hands nothing on": {
			"hand_on()\nreturn had", "return had"},
		"a waiter that gives up stays in the queue": {
			"  leave(token)\n  had = 1", "  had = 1"},
		"only one permit is handed on": {
			"while queued do", "for _ = 1, queued and 1 or 0 do"},
		"last come, first served": {
			"local first = redis.call('ZRANGE', queue, 0, 0)[1]\n    local", "local first = redis.call('ZREVRANGE', queue, 0, 0)[1]\n    local"},
		"the next in the queue passes one that knows of fewer permits": {
			"'^%d+:%d+:%d+:(%d+):') or 1)", "'^%d+:%d+:%d+:(%d+):') and 4)"},
		"the place is that of the request": {
			"came > 0 and last -", "false and last -"},
		"a clock that is set back stops the tickets": {
			"(fields[5] or 0), 1)", "(fields[4] or 0), 1)"},
		"a grant is shorter than its grace": {
			"lease(tonumber(grace or 0))", "lease(tonumber(grace or 0) / 2)"},
		"a renewal shortens a lease": {
			"math.max(tonumber(till), lease(length))", "lease(length) - 5000"},
		"a clock that is set back lengthens leases": {
			"if score > limit then", "if false then"},
		"a grant names no ticket": {
			"first, ticket .. ':'", "first, '9999999999999999:'"},
		"the granted are not told": {
			"    if inbox then\n      wake", "    if false then\n      wake"},
		"a second revoke takes the next holders' permits": {
			"redis.call('HGET', lock, 'revoker') ~= ARGV[1]", "true"},
		"the revoked are not told so": {
			"'revoked', next_fence()", "'revoked', whole(fence)"},
		"who has given up is not remembered": {
			"if ARGV[3] == '1' then", "if false then"},
		"who has given up gets a permit": {
			"if late(token) then", "if false then"},
		"keys have no TTL": {
			"if left < least then", "if false then"},
	})
}
