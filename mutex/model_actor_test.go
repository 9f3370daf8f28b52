package mutex

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
)

type stage int

const (
	idle    stage = iota
	lining        // behind another of its process
	waiting       // in Redis
	holding
)

// actor is a caller, with what it believes.
type actor struct {
	calls
	name     int
	inbox    string // of its process: some share one
	stage    stage
	queued   bool // waiting: an answer said so
	ttl      int64
	answered int64 // the fence of the last answer
	heard    int64 // waiting: when the last request was sent that was answered
	fence    int64 // holding
	until    int64 // holding: the end of its trust
	leaves   int64 // when it waits no longer; 0: never
	lost     bool  // a request for it has no reply
}

func (a *actor) grace() time.Duration { return queue.Grace(ms(a.ttl)) }

func (w *world) act(a *actor) {
	switch {
	case a.stage == idle:
		w.begin(a)
	case w.Chance(4):
		w.Tell("%d crashes", a.name)
		a.stage = idle
	case a.stage == lining:
		w.line(a)
	case a.stage == waiting:
		w.wait(a)
	case a.until <= w.Mono:
		w.Tell("%d has lost %s", a.name, a.id)
		w.finish(a)
	default:
		w.hold(a)
	}
}

func (w *world) begin(a *actor) {
	w.ids++
	id := fmt.Sprintf("id%d", w.ids)
	*a = actor{
		name: a.name, inbox: a.inbox, stage: waiting, ttl: 500 + w.Rand.Int64N(longestLease-500), heard: w.Mono,
		calls: calls{keys: keysOf(w.key), id: id, token: id},
	}
	if w.fair && w.Chance(50) {
		a.arrived = w.arrivals.Waited(id)
	}
	if w.Chance(40) {
		a.leaves = w.Mono + w.Rand.Int64N(6000)
	}
	if w.Chance(30) {
		a.token = "owner"
	} else if !w.fair && w.tenant(a) != nil && w.Chance(80) { // else it is of another process that shares the inbox
		a.stage = lining
		return
	}
	if w.ask(a, w.Chance(75)); a.stage == waiting && !a.queued {
		w.finish(a) // it did not want to wait
	}
}

// tenant is the other actor of the process that has the lock, or waits for it in Redis.
func (w *world) tenant(a *actor) *actor {
	for _, b := range w.actors {
		if b != a && b.inbox == a.inbox && b.stage >= waiting && !b.owned() {
			return b
		}
	}
	return nil
}

// line: the next asks Redis when the tenant has left.
func (w *world) line(a *actor) {
	switch {
	case w.tenant(a) == nil:
		a.stage = waiting
		w.ask(a, true)
	case w.Chance(10):
		w.Tell("%d leaves its line", a.name)
		if a.stage = idle; a.lost {
			w.finish(a)
		}
	}
}

// ask asks for the lock.
func (w *world) ask(a *actor, waits bool) {
	inbox := a.inbox
	if w.Chance(20) {
		inbox = ""
	}
	grace := time.Duration(0)
	if waits {
		grace = a.grace()
	}
	patience := queue.Unlimited
	if a.leaves > 0 {
		patience = max(a.leaves-w.Mono, 0)
	}
	w.send(a, "asks", a.asking(ms(a.ttl), grace, patience, inbox), func(cmd *redis.Cmd, sent int64) {
		if deadline, _ := w.now.lease(); w.now.token() != "" && deadline > w.now.at+longestLease {
			w.Wrong("%s holds for %d ms", w.now.token(), deadline-w.now.at)
		}
		got, err := parseAnswer(cmd, ms(a.ttl))
		switch {
		case err != nil:
			w.Wrong("%v", err)
		case got.Granted:
			a.stage, a.fence, a.until = holding, got.Fence, sent+got.Length.Milliseconds()
		case got.Left < 0:
			w.Wrong("%v until the lease ends", got.Left)
		default:
			a.queued, a.answered, a.heard = waits && patience > 0, got.Fence, sent
		}
	}, func() { a.lost = true })
}

func (w *world) wait(a *actor) {
	switch p := w.Rand.IntN(10); {
	case a.leaves > 0 && w.Mono >= a.leaves:
		w.finish(a)
	case p < 5:
		w.receive(a.inbox)
	case p < 9:
		w.ask(a, true)
	default:
		w.finish(a)
	}
}

// receive takes a message of the process.
func (w *world) receive(inbox string) {
	key, body, ok := w.Receive(inbox)
	if !ok {
		return
	}
	for _, a := range w.actors {
		if a.stage != waiting || key != a.id {
			continue
		}
		fence, granted := parseGrant(body, a.answered)
		if trust := a.heard + a.grace().Milliseconds(); granted && w.Mono < trust {
			w.Tell("%d is told that it holds %s", a.name, a.id)
			a.stage, a.fence, a.until = holding, fence, trust
		}
	}
}

func (w *world) hold(a *actor) {
	if w.Chance(60) {
		w.send(a, "renews", a.renewal(ms(a.ttl), 0), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int(); n == queue.Done {
				a.until = sent + a.ttl
			} else if a.until > w.Mono {
				w.Wrong("%s is lost while it is trusted", a.id)
			}
		}, nil)
		return
	}
	if !a.owned() && w.Chance(20) {
		w.park(a)
		return
	}
	w.finish(a)
}

// finish releases whatever the actor has, to the next of its process if there is one.
func (w *world) finish(a *actor) {
	held := a.stage == holding && a.until > w.Mono
	a.stage = idle
	next := w.next(a)
	h := successor{}
	if next != nil && held && !a.owned() {
		h = successor{id: next.id, ttl: ms(next.ttl), inbox: next.inbox, first: w.passes[a.inbox] < 2}
	}
	w.passes[a.inbox]++
	if h.id != "" {
		w.successors[h.id] = w.successors[h.id] || h.first
	}
	passed, known, began := false, false, w.Mono    // an earlier try may have given the next its lease
	for tries := 0; !known && tries < 20; tries++ { // a release is sent until it is known to have run
		w.send(a, "releases to "+h.id, a.releasing(h, a.lost), func(cmd *redis.Cmd, _ int64) {
			known = true
			reply, _ := cmd.Int64()
			if w.now.holds(a.id, a.token) || w.now.queued(a.id) {
				w.Wrong("%s is left after its release", a.id)
			}
			w.gone[a.id] = a.token
			if held && a.until > w.Mono && reply < queue.Done {
				w.Wrong("%s was trusted, and its release says %d", a.id, reply)
			}
			if reply > queue.Done && next.stage == lining {
				passed = true
				next.stage, next.fence, next.until = holding, reply, began+next.ttl
			}
		}, func() {
			if next != nil && h.id != "" {
				next.lost = true
			}
		})
		if !known && h.id != "" && next.stage == lining && w.Chance(30) {
			w.Tell("%d leaves its line", next.name)
			w.finish(next)
			held = false // as far as its holder is told: it has heard that Redis does not answer
		}
	}
	if !passed {
		w.passes[a.inbox] = 0
	} else if w.Chance(10) {
		w.Tell("%d had left", next.name)
		w.finish(next)
	}
}

// next is the first of the actor's line.
func (w *world) next(a *actor) *actor {
	for _, b := range w.actors {
		if b != a && b.inbox == a.inbox && b.stage == lining {
			return b
		}
	}
	return nil
}
