package report

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/observe"
)

const (
	// outOfTouch is how long the subscription may be down before that is worth a log line: it is remade now and
	// then.
	outOfTouch = 2 * time.Second

	// saturatedFor is how long loads must have been waiting for a limit.
	saturatedFor = time.Second
)

// Config is what a Journal needs of its Guard.
type Config struct {
	Logger     *slog.Logger
	Pending    func() int                  // how many invalidations are pending
	Untold     func() int                  // how many messages to local tiers are refused
	Tier       bool                        // the Guard has a local tier
	Background func(f func()) (begun bool) // runs f as a task of the Guard
}

// Journal logs what an operator should know, and counts what troubles cost. It is called only where things go wrong, so a hit
// pays nothing for it. Use Open.
type Journal struct {
	MaxLoads, FleetLoads Saturation
	Observer             atomic.Pointer[Observer] // of package admin; nil: nobody looks

	Tags, Keys Known // what loads have had; a key that a Cache has counts as had

	kinds sync.Map // of names to *Failing

	cfg                  Config
	outage, deaf, bypass episode
	late                 episode
	pending, mute        backlog
	refusals             refusals
	missed               Failing // messages, each time

	events  sync.Map // of What to *happened
	failing Throttle

	cuts    atomic.Int64 // breakers that are open
	failed  atomic.Int64 // requests to Redis that failed or were not made, so far
	without atomic.Int64 // loads without the cache, ever
	hedged  atomic.Int64 // loads beside Redis, ever

	mu      sync.Mutex
	last    observe.Troubles // what is known of the last of each, beside how long it lasts
	refused string           // the operation that Redis last answered with an error
}

// ends reports whether an operation ends what is cached.
func ends(op string) bool {
	switch op {
	case "invalidate", "update", "put", "intend":
		return true
	}
	return false
}

// Open opens the zero Journal.
func (j *Journal) Open(cfg Config) {
	j.cfg = cfg
	mute := "messages refused, local tiers may keep what was invalidated until Local.TTL"
	if !cfg.Tier {
		mute = "messages refused, other instances with a local tier, if there are any, may keep what was invalidated until Local.TTL"
	}
	missed := "messages may have been missed again and again, waiting calls ask again each time"
	if cfg.Tier {
		missed = "messages may have been missed again and again, the local tier is dropped each time"
	}
	j.missed.some, j.missed.said = someMissed, func(times, _ uint64) []any { return []any{"times", times} }
	j.refusals.logger, j.pending.what, j.pending.count, j.mute.what, j.mute.count = cfg.Logger, "keys", cfg.Pending, "messages", cfg.Untold
	for _, e := range []struct {
		*episode
		begun, over string
		delay       time.Duration
		costs       []cost
	}{
		{&j.outage, "redis unavailable, each instance loads for itself", "redis available again", 0, []cost{
			{name: "requests_failed", count: j.failed.Load}, {name: "loads_without_redis", count: j.alone},
		}},
		{&j.late, "redis is slow", "redis is quick again", 0, []cost{{name: "loads_beside_redis", count: j.alone}}},
		{&j.pending.episode, "invalidations pending, redis could not be told", "pending invalidations sent", 0, nil},
		{&j.mute.episode, mute, "refused messages sent", 0, nil},
		{&j.deaf, "cannot subscribe, waiting calls poll", "subscription established", outOfTouch, nil},
		{&j.missed.episode, missed, "messages arrive steadily again", 0, []cost{{name: "times", count: j.missed.failed.Load}}},
		{&j.bypass, "cache bypassed", "cache used again", 0, []cost{{name: "loads", count: j.without.Load}}},
		{&j.MaxLoads.episode, "loads wait for MaxLoads", "no load waits for MaxLoads", saturatedFor, []cost{{name: "loads_that_waited", count: j.MaxLoads.queued.Load}}},
		{&j.FleetLoads.episode, "loads wait for FleetLoads", "no load waits for FleetLoads", saturatedFor, []cost{{name: "loads_that_waited", count: j.FleetLoads.queued.Load}}},
	} {
		e.logger, e.episode.begun, e.episode.over, e.episode.delay, e.episode.costs = cfg.Logger, e.begun, e.over, e.delay, e.costs
	}
}

// Breaker notes that one has opened or closed. On a cluster the outage is over when all are closed.
func (j *Journal) Breaker(open bool) {
	if open {
		j.cuts.Add(1)
		j.outage.begin()
	} else if j.cuts.Add(-1) == 0 {
		j.outage.end("keys_pending", j.cfg.Pending())
	}
}

// Slowness is what goes on when Redis becomes slow, or is so no more.
type Slowness struct {
	Redis, Loads time.Duration // what they take; Loads 0: nobody knows
	Calls        string        // what they do
}

// Slow notes that another part of the keyspace is slow, or one is no more: so many are.
func (j *Journal) Slow(parts int64, s Slowness) {
	if parts == 0 {
		j.late.end()
		return
	}
	args := []any{"parts", parts, "calls", s.Calls}
	if s.Loads > 0 { // else it is not known yet
		args = append([]any{"loads", text(s.Loads)}, args...)
	}
	j.late.begin(append([]any{"redis", text(s.Redis)}, args...)...)
}

// RedisFailed notes that an operation failed. It reports whether that is news: a request that an open breaker refused is none.
func (j *Journal) RedisFailed(op, key string, err error) (news bool) {
	j.failed.Add(1)
	if errors.Is(err, breaker.ErrOpen) {
		return false
	}
	if answer, answered := script.Answer(err); answered {
		j.learn(func() { j.refused, j.last.Refused, j.last.RefusedAs = op, time.Now(), op+": "+answer })
	}
	switch {
	case j.outage.on(): // which is logged
	case breaker.Unavailable(err):
		j.failing.Log(context.Background(), j.cfg.Logger, slog.LevelWarn, "cacheguard: redis failed", key, "op", op, "error", err)
	case key == "":
		j.refusals.begin(op, err)
	default:
		j.refusals.begin(op, err, "key", errs.Short(key))
	}
	return true
}

// RedisDid notes that an operation succeeded, which may have been refused before. A nil Journal does nothing.
func (j *Journal) RedisDid(op string) {
	if j != nil {
		j.refusals.did(op)
	}
}

// LoadsWithout notes that a load runs without the cache.
func (j *Journal) LoadsWithout() { j.without.Add(1) }

// LoadsBeside notes that a load runs beside Redis, which is late.
func (j *Journal) LoadsBeside() { j.hedged.Add(1) }

// Beside is how many do, or did.
func (j *Journal) Beside() uint64 { return uint64(j.hedged.Load()) }

// alone is how many loads Redis has saved nobody: a Redis that is frozen is first slow, or unavailable, as chance has it.
func (j *Journal) alone() int64 { return j.without.Load() + j.hedged.Load() }

// PendingChanged notes that the set of pending invalidations has changed. The key is a new one; empty: there is none. A nil Journal does
// nothing.
func (j *Journal) PendingChanged(key string) {
	if j != nil {
		j.pending.changed("key", errs.Short(key))
	}
}

// UntoldChanged notes that a message to local tiers was refused, on the channel; empty: that one was let through at last.
func (j *Journal) UntoldChanged(channel string) { j.mute.changed("channel", channel) }

// PendingFor is since when invalidations are pending, and since when messages about others are refused; 0: none is.
func (j *Journal) PendingFor() (invalidations, messages time.Duration) {
	return j.pending.lasting(), j.mute.lasting()
}

// Lasts reports whether Redis keeps calls waiting, or invalidations from being sent: each has a line of its own, which what follows from it needs not.
func (j *Journal) Lasts() bool { return j.outage.on() || j.late.on() || j.pending.on() }

// Behind says why an old value may still be cached although its writer has invalidated it; empty: there is no reason.
func (j *Journal) Behind() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.pending.lately():
		return "invalidations were pending"
	case j.outage.lately():
		return "redis was unavailable"
	case ends(j.refused) && time.Since(j.last.Refused) < logEvery:
		return "redis refused " + j.last.RefusedAs
	case j.cfg.Tier && j.deaf.lately():
		return "messages did not arrive"
	}
	return ""
}

// Missed notes that a local tier is dropped, as messages may have been missed. It holds up neither the subscription nor a Get.
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

// Troubles are for package admin.
func (j *Journal) Troubles() observe.Troubles {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.last
	t.Outage, t.Slow, t.Pending, t.Mute = j.outage.lasting(), j.late.lasting(), j.pending.lasting(), j.mute.lasting()
	t.Deaf, t.Missed, t.Bypassed = j.deaf.lasting(), j.missed.lasting(), j.bypass.lasting()
	t.Saturated, t.FleetSaturated = j.MaxLoads.lasting(), j.FleetLoads.lasting()
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
	for _, e := range []*episode{&j.outage, &j.pending.episode, &j.mute.episode, &j.deaf, &j.late, &j.MaxLoads.episode, &j.FleetLoads.episode, &j.bypass} {
		e.close()
	}
	j.kinds.Range(func(_, f any) bool {
		f.(*Failing).close() //nolint:forcetypeassert // nothing else is stored
		return true
	})
	j.refusals.close()
	j.missed.close()
}
