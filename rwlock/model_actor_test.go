package rwlock

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/queue"
)

type stage int

const (
	idle stage = iota
	waiting
	holding
)

// actor is a caller, with what it believes.
type actor struct {
	name   int
	inbox  string // of its process: some share one
	stage  stage
	mode   mode
	token  string
	ttl    int64
	ticket int64

	arrived int64
	fence   int64
	heard   int64 // waiting: when the last request was sent that was answered
	until   int64 // holding: the end of its trust
	leaves  int64 // when it waits no longer; 0: never
	lost    bool  // a request for it has no reply
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
		name: a.name, inbox: a.inbox, stage: waiting, mode: reading,
		token: fmt.Sprintf("t%d", w.tokens), ttl: 500 + w.Rand.Int64N(9500), heard: w.Mono,
	}
	if w.Chance(40) {
		a.mode = writing
		if w.Chance(50) {
			a.arrived = w.arrivals.Waited(a.token)
		}
	}
	if w.Chance(40) {
		a.leaves = w.Mono + w.Rand.Int64N(6000)
	}
	if w.ask(a, w.Chance(75)); a.stage == waiting && a.ticket == 0 {
		w.finish(a) // it did not want to wait
	}
}

// ask asks for the lock.
func (w *world) ask(a *actor, waits bool) {
	inbox := a.inbox
	if w.Chance(20) {
		inbox = ""
	}
	wait := time.Duration(0)
	if waits {
		wait = queue.Grace(ms(a.ttl))
	}
	patience := queue.Unlimited
	if a.leaves > 0 {
		patience = max(a.leaves-w.Mono, 0)
	}
	w.send(a, "asks to "+map[mode]string{writing: "write", reading: "read"}[a.mode],
		w.lock.Asking(a.token, a.mode.arg(), ms(a.ttl), wait, patience, inbox, a.arrived), func(cmd *redis.Cmd, sent int64) {
			got, err := queue.ParseAsked(cmd)
			if err != nil {
				w.Wrong("%v", err)
				return
			}
			if got.Left < 0 {
				w.Wrong("%v until leases end", got.Left)
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
		w.send(a, "is alive", w.lock.Beating(a.token, a.ticket, queue.Grace(ms(a.ttl))), func(cmd *redis.Cmd, sent int64) {
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
		if a.stage != waiting || a.inbox != inbox || key != inboxKey(w.lock.Keys[0], a.mode, a.token) {
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
	case p < 3:
		w.send(a, "renews", w.lock.Renewing(a.token, ms(a.ttl), a.fence), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int(); n == queue.Done {
				a.until = sent + a.ttl
			} else if a.until > w.Mono {
				w.Wrong("%s is lost while it is trusted", a.token)
			}
		}, nil)
	case p < 7 && a.mode == writing:
		a.mode = reading // also when the request is lost
		w.send(a, "downgrades", w.lock.toReader(a.token, ms(a.ttl), a.fence), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int(); n == queue.Done {
				a.until = sent + a.ttl
			}
		}, nil)
	case p < 7:
		w.send(a, "upgrades", w.lock.toWriter(a.token, ms(a.ttl), a.fence), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int64(); n > queue.Done {
				a.mode, a.fence, a.until = writing, n, sent+a.ttl
			}
		}, nil)
	case p < 9:
		w.finish(a)
	}
}

// finish releases whatever the actor has, until that is known to have run.
func (w *world) finish(a *actor) {
	a.stage = idle
	for known, tries := false, 0; !known && tries < 20; tries++ {
		w.send(a, "releases", w.lock.Releasing(a.token, a.fence, a.lost), func(*redis.Cmd, int64) {
			known, w.gone[a.token] = true, true
			w.checkGone()
		}, func() {})
	}
}
