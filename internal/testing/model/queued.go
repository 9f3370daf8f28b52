package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

// Stage is how far an Actor is.
type Stage int

// The stages.
const (
	Idle Stage = iota
	Waiting
	Holding
)

// Actor is a caller, with what it believes.
type Actor struct {
	Name   int
	Inbox  string // of its process: some share one
	Stage  Stage
	As     any    // how it asks, as an argument of the script
	About  string // what messages for it are about
	Token  string
	TTL    int64
	Ticket int64

	Arrived int64
	Fence   int64
	Heard   int64 // waiting: when the last request was sent that was answered
	Until   int64 // holding: the end of its trust
	Leaves  int64 // when it waits no longer; 0: never
	Lost    bool  // a request for it has no reply
	Revoked bool  // it was, while it held
}

// Queued is a world around a lock whose holders and waiters have leases of their own.
type Queued struct {
	*World
	queue.Calls
	Actors   []*Actor
	Arrivals *Arrivals // of those in the first queue
	Now      Snapshot

	// Arrive says how an actor asks: As, About and Arrived.
	Arrive func(*Actor)
	// Change does what a holder may do besides renewing and releasing; nil: there is nothing.
	Change func(*Actor)
	// Held returns the tokens that hold, and until when.
	Held func(Snapshot) map[string]int64
	// Compare compares Now with what was before a script of the token's that sent so many messages.
	Compare func(before Snapshot, token string, sent int64)

	looked looked
	tokens int
	gone   map[string]bool // the tokens that have given up, and were told so
}

// NewQueued returns the world of a seed, with 2 actors or more, up to most.
func NewQueued(rdb *redis.Client, seed uint64, calls queue.Calls, most int) *Queued {
	w := &Queued{World: NewWorld(rdb, seed, calls.Keys[0]), Calls: calls, gone: make(map[string]bool)}
	w.Look, w.Check, w.Arrivals = w.look, w.check, NewArrivals(w.World)
	w.Now.Sets = make([]map[string]int64, len(calls.Keys)-2)
	for i := range 2 + w.Rand.IntN(most-1) {
		w.Actors = append(w.Actors, &Actor{Name: i, Inbox: w.Inboxes[i%len(w.Inboxes)]})
	}
	return w
}

// PlayOut plays so many steps, and returns the problem that was found, if any.
func (w *Queued) PlayOut(seed uint64, steps int) (problem string) {
	defer w.Clean(w.Keys...)
	w.Play(steps, Deeds{
		Act: func() { w.act(w.Actors[w.Rand.IntN(len(w.Actors))]) }, Revoke: w.revoke, Leap: w.leap, Settle: w.settle,
	})
	return w.Verdict(seed)
}

// Trusts reports whether an actor trusts that it holds.
func (w *Queued) Trusts(a *Actor) bool { return a.Stage == Holding && a.Until > w.Mono }

// SendFor sends an actor's request; see Send.
func (w *Queued) SendFor(a *Actor, what string, call script.Call, heard func(cmd *redis.Cmd, sent int64), unheard func()) {
	w.Send(a.Name, a.Token, what, call, heard, unheard)
}

// leap has all trust suffer when the clock is set forward.
func (w *Queued) leap(by int64) {
	for _, a := range w.Actors {
		a.Heard -= by
		a.Until -= by
	}
}

func (w *Queued) revoke() {
	for _, a := range w.Actors {
		a.Revoked = a.Revoked || a.Stage == Holding && w.Held(w.Now)[a.Token] > w.Clock()
		a.Until, a.Heard = 0, -queue.LongestGrace.Milliseconds() // that is what it is for; a message may be on its way
	}
	call := w.Revoking(strconv.FormatUint(w.Rand.Uint64(), 10))
	w.Run(call, "")
	held := w.Held(w.Now)
	if w.Run(call, ""); len(w.Held(w.Now)) < len(held) {
		w.Wrong("a copy of a revoke has taken something from one of %v", slices.Collect(maps.Keys(held)))
	}
}

func (w *Queued) act(a *Actor) {
	switch {
	case a.Stage == Idle:
		w.begin(a)
	case w.Chance(4):
		w.Tell("%d crashes", a.Name)
		a.Stage = Idle
	case a.Stage == Waiting:
		w.wait(a)
	case a.Until <= w.Mono:
		w.Tell("%d has lost %s", a.Name, a.Token)
		w.finish(a)
	default:
		w.hold(a)
	}
}

func (w *Queued) begin(a *Actor) {
	w.tokens++
	*a = Actor{
		Name: a.Name, Inbox: a.Inbox, Stage: Waiting, As: a.As,
		Token: fmt.Sprintf("t%d", w.tokens), TTL: 500 + w.Rand.Int64N(9500), Heard: w.Mono,
	}
	w.Arrive(a)
	if w.Chance(40) {
		a.Leaves = w.Mono + w.Rand.Int64N(6000)
	}
	if w.ask(a, w.Chance(75)); a.Stage == Waiting && a.Ticket == 0 {
		w.finish(a) // it did not want to wait
	}
}

func (w *Queued) ask(a *Actor, waits bool) {
	inbox := a.Inbox
	if w.Chance(20) {
		inbox = ""
	}
	grace := time.Duration(0)
	if waits {
		grace = a.grace()
	}
	patience := queue.Unlimited
	if a.Leaves > 0 {
		patience = max(a.Leaves-w.Mono, 0)
	}
	call := w.Asking(a.Token, a.As, a.ttl(), grace, patience, inbox, a.Arrived)
	w.SendFor(a, fmt.Sprintf("asks (%v)", a.As), call, func(cmd *redis.Cmd, sent int64) {
		got, err := queue.ParseAsked(cmd)
		if err != nil || got.Left < 0 {
			w.Wrong("%+v, %v", got, err)
		}
		switch got.Status {
		case "held":
			a.Stage, a.Fence, a.Until = Holding, got.Fence, sent+a.TTL
		case "queued":
			a.Ticket, a.Heard = got.Ticket, sent
		}
	}, func() { a.Lost = true })
}

func (w *Queued) wait(a *Actor) {
	switch p := w.Rand.IntN(10); {
	case a.Leaves > 0 && w.Mono >= a.Leaves:
		w.finish(a)
	case p < 4:
		w.receive(a.Inbox)
	case p < 7:
		w.SendFor(a, "is alive", w.Beating(a.Token, a.Ticket, a.grace()), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int(); n > 0 {
				a.Heard = sent
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
func (w *Queued) receive(inbox string) {
	key, body, ok := w.Receive(inbox)
	if !ok {
		return
	}
	for _, a := range w.Actors {
		if a.Stage != Waiting || a.Inbox != inbox || key != a.About {
			continue
		}
		fence, granted := queue.ParseGrant(body, a.Ticket)
		granted = granted && (a.Leaves == 0 || w.Mono < a.Leaves)
		if trust := a.Heard + a.grace().Milliseconds(); granted && w.Mono < trust {
			w.Tell("%d is told that it holds %s", a.Name, a.Token)
			a.Stage, a.Fence, a.Until = Holding, fence, trust
		}
	}
}

func (w *Queued) hold(a *Actor) {
	switch p := w.Rand.IntN(10); {
	case p < 4:
		w.SendFor(a, "renews", w.Renewing(a.Token, a.ttl(), a.Fence), func(cmd *redis.Cmd, sent int64) {
			if n, _ := cmd.Int(); n == queue.Done {
				a.Until = sent + a.TTL
			} else if a.Until > w.Mono {
				w.Wrong("%s is lost while it is trusted", a.Token)
			}
		}, nil)
	case p < 7:
		w.finish(a)
	case w.Change != nil:
		w.Change(a)
	}
}

// finish releases whatever the actor has, until that is known to have run.
func (w *Queued) finish(a *Actor) {
	a.Stage = Idle
	for known, tries := false, 0; !known && tries < 20; tries++ {
		w.SendFor(a, "releases", w.Releasing(a.Token, a.Fence, a.Lost), func(cmd *redis.Cmd, _ int64) {
			if n, _ := cmd.Int(); n == queue.Lost && a.Revoked {
				w.Wrong("%s was revoked, and its renewal says that it is lost", a.Token)
			}
			known, w.gone[a.Token] = true, true
			w.checkGone()
		}, func() {})
	}
}

func (a *Actor) ttl() time.Duration   { return time.Duration(a.TTL) * time.Millisecond }
func (a *Actor) grace() time.Duration { return queue.Grace(a.ttl()) }
