// Package model helps tests to play the protocol of a lock at random. Actors that know only the answers of its scripts do
// what callers, crashes, pauses, networks and clocks do, on a real server, one script at a time. After each script, the test
// compares what the server holds, what it held before, and what the actors believe. The server's clock and its PUBLISH are
// the model's own, by editing the scripts' sources (Modelled). Everything follows from a seed:
//
//	MODEL_SEED=42 go test ./rwlock -run Model
package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
)

const history = 25 // steps told when a run goes wrong

// Modelled replaces what would not be replayable in a script: the clock, and messages to an inbox.
func Modelled(source string) string {
	source = strings.ReplaceAll(source, `redis.call('TIME')`, `redis.call('HMGET', KEYS[1] .. ':clock', 's', 'us')`)
	return strings.ReplaceAll(source, `publish(inbox,`, `redis.call('RPUSH', inbox,`)
}

// World is one run of a model. Times are in ms; Mono passes, and the server's clock is Mono plus a skew.
type World struct {
	Redis   *redis.Client
	Rand    *rand.Rand
	Mono    int64
	Inboxes []string // of the processes there are

	// Look queues the commands that read what Check looks at, behind each script: one request has all.
	Look func(ctx context.Context, pipe redis.Pipeliner)
	// Check looks at what a script has done that ran at a time of the server's, for an actor's token if it has one, and sent
	// that many messages.
	Check func(at int64, token string, sent int64)

	key     string // of the lock
	skew    int64
	leaps   int       // of the clock
	rests   int       // how many of a hundred pauses are long: some locks are used all the time, and others now and then
	copies  []request // of which a copy may arrive late
	told    []string
	problem string
}

type request struct {
	call  script.Call
	token string
	sent  int64
}

// latest is how late a copy may be, in ms: less than what is remembered of those who have left, as the clock leaps.
const latest = 300_000

// NewWorld returns the world of a seed, around the lock whose first key is given, with three processes.
func NewWorld(rdb *redis.Client, seed uint64, key string) *World {
	w := &World{Redis: rdb, Rand: rand.New(rand.NewPCG(seed, 1)), key: key, skew: 1_700_000_000_000}
	w.rests = 5
	if w.Chance(20) {
		w.rests = 50
	}
	for i := range 3 {
		w.Inboxes = append(w.Inboxes, key+":inbox"+strconv.Itoa(i))
	}
	return w
}

// Clean deletes the model's own keys, and those given.
func (w *World) Clean(keys ...string) {
	keys = append(append(keys, w.key+":clock"), w.Inboxes...)
	w.Redis.Del(context.Background(), keys...)
}

// Clock is what the server's clock shows.
func (w *World) Clock() int64 { return w.Mono + w.skew }

// Tell notes what happens.
func (w *World) Tell(format string, args ...any) {
	w.told = append(w.told, fmt.Sprintf("%8d  ", w.Mono)+fmt.Sprintf(format, args...))
}

// Wrong notes a problem. The first one counts.
func (w *World) Wrong(format string, args ...any) {
	if w.problem == "" {
		w.problem = fmt.Sprintf(format, args...)
	}
}

// Verdict is the problem, and what led to it; empty if there is none.
func (w *World) Verdict(seed uint64) string {
	if w.problem == "" {
		return ""
	}
	return fmt.Sprintf("seed %d: %s\n%s", seed, w.problem, strings.Join(w.told[max(0, len(w.told)-history):], "\n"))
}

// Chance is true in that many of a hundred cases.
func (w *World) Chance(percent int) bool { return w.Rand.IntN(100) < percent }

// Deeds are what happens in a world besides the passing of time, and how it ends.
type Deeds struct {
	Act    func()         // one of the actors does something
	Revoke func()         // somebody takes the lock away
	Leap   func(by int64) // the server's clock was set forward: leases that are trusted end, and trust suffers as much
	Settle func()         // everybody crashes, and all leases end
}

// Play has things happen until something is wrong.
func (w *World) Play(steps int, d Deeds) {
	for range steps {
		if w.problem != "" {
			return
		}
		switch p := w.Rand.IntN(100); {
		case p < 20:
			w.pass()
		case p < 22:
			by := w.Rand.Int64N(20_000) - 15_000
			w.Tell("the clock leaps by %d", by)
			w.skew += by
			w.leaps++
			d.Leap(max(by, 0))
		case p < 26:
			w.lateCopy()
		case p < 27:
			w.Tell("revoke")
			d.Revoke()
		default:
			d.Act()
		}
	}
	if w.problem == "" {
		d.Settle()
	}
}

// pass lets time pass: mostly less than a lease, sometimes more than any, and now and then nearly as long as a fence is
// remembered.
func (w *World) pass() {
	w.Mono += w.Rand.Int64N(700)
	if w.Chance(10) {
		w.Mono += w.Rand.Int64N(8000)
	}
	if w.Chance(w.rests) {
		w.Mono += w.Rand.Int64N(600_000)
	}
}

// lateCopy delivers a copy of a request that was sent some time ago, if there is one.
func (w *World) lateCopy() {
	if len(w.copies) == 0 {
		return
	}
	late := w.copies[max(0, len(w.copies)-1-w.Rand.IntN(8))]
	if w.Mono-late.sent < latest {
		w.Tell("a copy arrives late (%s)", late.token)
		w.Run(late.call, late.token)
	}
}

// Send sends an actor's request, which may take its time, be lost, or run twice, and whose reply may be lost. heard is called
// with a reply and when the request was sent. unheard, if not nil, is called when a request was sent whose reply was never
// heard: only such a request may arrive late. With a nil one, answered requests may also come again, as of a client that sends
// them again by itself.
func (w *World) Send(actor int, token, what string, call script.Call, heard func(cmd *redis.Cmd, sent int64), unheard func()) {
	sent := w.Mono
	w.Mono += w.Rand.Int64N(40)
	if w.Chance(5) {
		w.Mono += w.Rand.Int64N(4000)
	}
	late := request{call, token, sent}
	if unheard == nil {
		unheard = func() {}
		if w.Chance(20) {
			w.copies = append(w.copies, late)
		}
	}
	switch p := w.Rand.IntN(100); {
	case p < 5:
		w.Tell("%d %s (%s), which is lost", actor, what, token)
		w.copies = append(w.copies, late)
		unheard()
	case p < 17:
		w.Tell("%d %s (%s), and hears nothing", actor, what, token)
		unheard()
		w.Run(call, token)
	case p < 24:
		w.Tell("%d %s (%s), twice", actor, what, token)
		unheard()
		if w.Chance(50) {
			w.Run(call, token)
		} else {
			w.copies = append(w.copies, late)
		}
		w.Mono += w.Rand.Int64N(1000)
		heard(w.Run(call, token), sent)
	default:
		w.Tell("%d %s (%s)", actor, what, token)
		heard(w.Run(call, token), sent)
	}
}

// Run runs a script of the token's at the present time, and checks what it did.
func (w *World) Run(call script.Call, token string) *redis.Cmd {
	at, micros := w.Clock(), w.Rand.Int64N(1000)
	cmd, sent, err := w.run(call, at, micros, false)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd, sent, err = w.run(call, at, micros, true)
	}
	if err != nil {
		w.Wrong("%v", err)
	}
	w.Check(at, token, sent)
	return cmd
}

// run runs a script, and looks, in one request. It counts the messages.
func (w *World) run(call script.Call, at, micros int64, bySource bool) (cmd *redis.Cmd, sent int64, err error) {
	ctx := context.Background()
	pipe := w.Redis.Pipeline()
	pipe.HSet(ctx, w.key+":clock", "s", at/1000, "us", at%1000*1000+micros)
	before := w.messages(ctx, pipe)
	cmd = call.Command(ctx, bySource)
	_ = pipe.Process(ctx, cmd) // only queues
	after := w.messages(ctx, pipe)
	w.Look(ctx, pipe)
	_, err = pipe.Exec(ctx)
	for i := range w.Inboxes {
		sent += after[i].Val() - before[i].Val()
	}
	return cmd, sent, err
}

// Receive delivers the oldest message to a process, or loses it.
func (w *World) Receive(inbox string) (key, body string, ok bool) {
	payload, err := w.Redis.LPop(context.Background(), inbox).Result()
	if err != nil {
		return "", "", false
	}
	if w.Chance(15) {
		w.Tell("a message is lost")
		return "", "", false
	}
	size, rest, _ := strings.Cut(payload, ":")
	n, _ := strconv.Atoi(size)
	return rest[:n], rest[n:], true
}

// messages asks how many lie in each inbox.
func (w *World) messages(ctx context.Context, pipe redis.Pipeliner) (sizes []*redis.IntCmd) {
	for _, inbox := range w.Inboxes {
		sizes = append(sizes, pipe.LLen(ctx, inbox))
	}
	return sizes
}
