package watch

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/logging"
	"github.com/cacheguard/go/internal/watch/observe"
)

// soon is by when a Redis that is silent or slow is known to be, beside its time-out, unless that is longer: what that
// may bring has no line before. The subscription is remade now and then, too.
const soon = 2 * time.Second

// Config is what a Journal needs of its Guard.
type Config struct {
	Logger     *slog.Logger
	Pending    func() int                  // how many invalidations are pending
	Untold     func() int                  // how many messages to local tiers are refused
	Timeout    time.Duration               // of an operation on Redis
	Tier       bool                        // the Guard has a local tier
	Background func(f func()) (begun bool) // runs f as a task of the Guard
}

// Journal logs what an operator should know, and counts what troubles cost. It is called only where things go wrong, so
// a hit pays nothing for it. Use Open.
type Journal struct {
	MaxLoads, Limiter Saturation
	Viewer            atomic.Pointer[observe.Viewer] // see View; nil: nobody looks

	Tags, Keys Known // what loads have had; a key that a Cache has counts as had

	cfg                  Config
	outage, deaf, bypass episode
	late, unanswered     episode
	pending, mute        backlog
	refusals             refusals
	missed               Failing // messages, each time

	events map[What]*event

	steppedBack logging.Throttle // clocks

	cuts   atomic.Int64 // breakers that are open
	failed atomic.Int64 // requests to Redis that failed or were not made, so far

	Without atomic.Int64 // loads without the cache, ever
	Beside  atomic.Int64 // loads beside Redis, which is late, ever

	mu       sync.Mutex
	troubles []*episode
	kinds    map[string]*Kind
	last     observe.Troubles // what is known of the last of each, beside how long it lasts
}

// Open opens the zero Journal.
func (j *Journal) Open(cfg Config) {
	j.cfg, j.kinds, j.events = cfg, make(map[string]*Kind), make(map[What]*event)
	for what, l := range ofEvents {
		j.events[what] = &event{line: l}
	}
	tiers, missing := "other instances with a local tier, if there are any,", "waiting calls ask again"
	if cfg.Tier {
		tiers, missing = "local tiers", "the local tier is dropped"
	}
	mute := "messages refused, " + tiers + " may keep what was invalidated until Local.TTL"
	missed := "messages may have been missed again and again, " + missing + " each time"
	j.missed.some, j.missed.said = someMissed, func(times, _ uint64) []any { return []any{"times", times} }
	j.refusals.by = make(map[refusal]*refused)
	j.refusals.open = func(e *episode, s says) { j.learn(func() { j.openLocked(e, s) }) }
	j.pending.what, j.pending.count, j.mute.what, j.mute.count = "keys", cfg.Pending, "messages", cfg.Untold
	soon := soon + min(cfg.Timeout, soon)
	waited := func(s *Saturation) []cost { return []cost{{name: "loads_that_waited", count: s.queued.Load}} }
	for _, t := range []struct {
		*episode
		says
	}{
		{&j.outage, says{"outage", "redis unavailable, each instance loads for itself", "redis available again", 0, []cost{
			{name: "requests_failed", count: j.failed.Load}, {name: "loads_without_redis", count: j.alone},
		}, nil}},
		{&j.late, says{"slow", "redis is slow", "redis is quick again", 0, []cost{{name: "loads_beside_redis", count: j.alone}}, j.outage.on}},
		{&j.unanswered, says{"", "redis failed", "", soon, nil, j.hasCause}},
		{&j.pending.episode, says{"pending", "invalidations pending, redis could not be told", "pending invalidations sent", soon, nil, j.hasCause}},
		{&j.mute.episode, says{"mute", mute, "refused messages sent", 0, nil, j.hasCause}},
		{&j.deaf, says{"deaf", "cannot subscribe, waiting calls poll", "subscription established", soon, nil, j.hasCause}},
		{&j.missed.episode, says{"missed", missed, "messages arrive steadily again", 0, []cost{{name: "times", count: j.missed.failed.Load}}, j.hasCause}},
		{&j.bypass, says{"bypassed", "cache bypassed", "cache used again", 0, []cost{{name: "loads", count: j.Without.Load}}, nil}},
		{&j.MaxLoads.episode, says{"saturated", "loads wait for MaxLoads", "no load waits for MaxLoads", soon, waited(&j.MaxLoads), j.hasCause}},
		{&j.Limiter.episode, says{"limiter", "loads wait for Config.Limiter", "no load waits for Config.Limiter", soon, waited(&j.Limiter), j.hasCause}},
	} {
		j.openLocked(t.episode, t.says)
	}
}

// openLocked opens a trouble, until Close.
func (j *Journal) openLocked(e *episode, s says) {
	e.says, e.logger, j.troubles = s, j.cfg.Logger, append(j.troubles, e)
}

// hasCause reports whether Redis is silent or slow, or refuses whatever it is asked, which brings more.
func (j *Journal) hasCause() bool {
	return j.outage.on() || j.late.on() || time.Now().UnixNano()-j.refusals.whole.Load() < int64(logging.Every)
}

// breaker notes that one has opened or closed. On a cluster the outage is over when all are closed.
func (j *Journal) breaker(open bool, why error) {
	if open {
		j.cuts.Add(1)
		j.outage.begin("error", why)
	} else if j.cuts.Add(-1) == 0 {
		j.outage.end("keys_pending", j.cfg.Pending())
	}
}

// Slow notes that another part of the keyspace is slow, or one is no more: so many are. Redis and loads, 0: nobody
// knows, take that long, and calls do that.
func (j *Journal) Slow(parts int64, redis, loads time.Duration, calls string) {
	if parts == 0 {
		j.late.end()
		return
	}
	args := []any{"redis", logging.Text(redis)}
	if loads > 0 {
		args = append(args, "loads", logging.Text(loads))
	}
	j.late.begin(append(args, "parts", parts, "calls", calls)...)
}

// RedisFailed notes that an operation failed: unavailable says that Redis serves nobody.
func (j *Journal) RedisFailed(op, key string, err error, unavailable bool) {
	j.failed.Add(1)
	if a := answer(nil); errors.As(err, &a) {
		j.learn(func() { j.last.Refused, j.last.RefusedAs = time.Now(), op+": "+a.Error() })
	}
	var args []any
	if key != "" {
		args = []any{"key", errs.Short(key)}
	}
	switch {
	case j.outage.on(): // which is logged
	case unavailable:
		j.unanswered.begin(append(args, "op", op, "error", err)...)
	default:
		j.refusals.begin(op, err, args...)
	}
}

// RedisUntried notes that an operation was not tried, as Redis does not answer.
func (j *Journal) RedisUntried() { j.failed.Add(1) }

// answer is an error with which Redis itself answered.
type answer interface {
	error
	RedisError()
}

// RedisDid notes that an operation succeeded, which may have been refused before. A nil Journal does nothing.
func (j *Journal) RedisDid(op string) {
	if j != nil {
		j.refusals.did(op)
	}
}

// LoadsBeside notes that a load runs beside Redis, which is late.
func (j *Journal) LoadsBeside() { j.Beside.Add(1) }

// alone is how many loads Redis has saved nobody: a Redis that is frozen is first slow, or unavailable, as chance has
// it.
func (j *Journal) alone() int64 { return j.Without.Load() + j.Beside.Load() }

// PendingChanged notes that the set of pending invalidations has changed. The key is a new one; empty: there is none. A
// nil Journal does nothing.
func (j *Journal) PendingChanged(key string) {
	if j != nil {
		j.pending.changed("key", errs.Short(key))
	}
}

// UntoldChanged notes that a message to local tiers was refused, on the channel; empty: that one was let through at
// last.
func (j *Journal) UntoldChanged(channel string) { j.mute.changed("channel", channel) }

// Missed notes that a local tier is dropped, as messages may have been missed. It holds up neither the subscription nor
// a Get.
func (j *Journal) Missed() {
	j.cfg.Background(func() { j.missed.Loaded(errMissed, "") }) // stop: the Logger's
}

var errMissed = errors.New("some did not come, or the subscription was lost")

// MissesAgain reports whether that happens again and again: then a subscription that stands is not worth much.
func (j *Journal) MissesAgain() bool { return j.missed.on() }

// Subscribed notes whether messages arrive, and why not, as far as that is known.
func (j *Journal) Subscribed(live bool, why error) {
	if !live && why != nil && !j.cfg.Tier && !j.deaf.on() { // a tier says it by itself
		j.missed.Loaded(why, "")
	}
	switch {
	case live:
		j.learn(func() { j.last.DeafAs = "" })
		j.deaf.end()
		j.deaf.rename("subscription lost, waiting calls poll", "subscription back")
	case why != nil:
		j.learn(func() { j.last.DeafAs = why.Error() })
		j.deaf.begin("error", why)
	default:
		j.deaf.begin()
	}
}

// Bypass notes whether the cache is bypassed, and until when; zero: until it is turned on again.
func (j *Journal) Bypass(on bool, until time.Time) {
	j.learn(func() { j.last.BypassedUntil = until })
	switch {
	case !on:
		j.bypass.end()
	case until.IsZero():
		j.bypass.begin("where", "this instance")
	default:
		j.bypass.begin("where", "all instances", "until", until.Round(time.Second))
	}
}

// Lasts is for how long there has been the trouble that has the name; 0: there is none.
func (j *Journal) Lasts(name string) time.Duration { return j.Troubles().Last[name] }

// Troubles are for package admin.
func (j *Journal) Troubles() observe.Troubles {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.last
	t.Last = make(map[string]time.Duration)
	for _, e := range j.troubles {
		t.Last[e.name] = e.lasting()
		if e.name != "" && e.isBrought() {
			t.Brought = append(t.Brought, e.name)
		}
	}
	delete(t.Last, "") // those are not the Guard's alone
	return t
}

// learn notes more of what is known of the last troubles.
func (j *Journal) learn(note func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	note()
}

// Close ends what is to be logged later.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.troubles {
		e.close()
	}
}

// View is who counts for package admin, once that has asked; before, one who does nothing.
func (j *Journal) View() observe.Viewer {
	if v := j.Viewer.Load(); v != nil {
		return *v
	}
	return nobody{}
}

// nobody looks.
type nobody struct{}

func (nobody) Answered(_, _, _ string)            {}
func (nobody) Happened(_, _ string)               {}
func (nobody) Loading(string, int) func(bool)     { return func(bool) {} }
func (nobody) Loaded(string, time.Duration, bool) {}
