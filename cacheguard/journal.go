package cacheguard

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/observe"
)

const (
	// outOfTouch is how long the subscription may be down before that is worth a log line: it is remade now and
	// then.
	outOfTouch = 2 * time.Second

	// saturatedFor is how long loads must have been waiting for MaxLoads.
	saturatedFor = time.Second
)

// journal logs what an operator should know, and counts what troubles cost. It is called only where things go wrong, so a hit
// pays nothing for it.
type journal struct {
	guard *Guard
	user  Hooks // those of the Config

	outage, owing, deaf, bypassed                         episode
	saturated, fleetBusy                                  saturation // MaxLoads, FleetLoads
	taken, lost, slow, still, damaged, voided, step, gone throttled

	cuts    atomic.Int64 // breakers that are open
	failed  atomic.Int64 // requests to Redis that failed or were not made, so far
	without atomic.Int64 // loads without the cache, ever
	owedMax atomic.Int64 // the most keys since some are owed
	costs   costCounts   // at the beginning of what goes on

	refused atomic.Pointer[refusal] // the last one

	counting sync.Mutex // one goroutine at a time counts what is owed: an old count must not end what has begun since
}

// costCounts are the counts at the beginning of an outage or a bypass.
type costCounts struct{ failed, without, bypassed atomic.Int64 }

// refusal is an error that Redis answered with.
type refusal struct {
	at   time.Time
	text string
}

func (j *journal) init(g *Guard) {
	j.guard = g
	logs := g.cfg.Logger
	j.outage = episode{logger: logs, begun: "redis unavailable, each instance loads for itself", over: "redis available again"}
	j.owing = episode{logger: logs, begun: "invalidations owed, redis could not be told", over: "owed invalidations sent"}
	j.deaf = episode{logger: logs, begun: "cannot subscribe, waiting calls poll", over: "subscription established", delay: outOfTouch}
	j.saturated.episode = episode{logger: logs, begun: "loads wait for MaxLoads", over: "no load waits for MaxLoads", delay: saturatedFor}
	j.fleetBusy.episode = episode{logger: logs, begun: "loads wait for FleetLoads", over: "no load waits for FleetLoads", delay: saturatedFor}
	j.bypassed = episode{logger: logs, begun: "cache bypassed", over: "cache used again"}
}

// hooks returns the user's hooks, wrapped so that the journal hears of things first.
func (j *journal) hooks(h Hooks) Hooks {
	user := h
	j.user = h
	h.OnTakeover = func(key string) {
		j.count(key, func(t *observe.Tally) { t.Takeovers.Add(1) })
		j.warn(&j.taken, "lease taken over from an instance that did not renew it", key)
		user.takeover(key)
	}
	h.OnLeaseLost = func(key string) {
		j.count(key, func(t *observe.Tally) { t.LeasesLost.Add(1) })
		j.warn(&j.lost, "lease lost by a load that still runs", key)
		user.leaseLost(key)
	}
	h.OnDamaged = func(key string, err error) {
		j.count(key, func(t *observe.Tally) { t.Damaged.Add(1) })
		j.warn(&j.damaged, "entry cannot be decoded, it is loaded anew", key, "error", err)
		user.damaged(key, err)
	}
	h.OnUnstorable = func(key string, err error) {
		j.count(key, func(t *observe.Tally) { t.Unstorable.Add(1) })
		user.unstorable(key, err)
	}
	h.OnLoad = func(key string, took time.Duration, err error) {
		if limit := j.guard.cfg.SlowLoad; limit > 0 && took >= limit {
			j.warn(&j.slow, "slow load", key, "took", took.Round(time.Millisecond), "error", err)
		}
		user.loaded(key, took, err)
	}
	h.OnBreaker = func(open bool) {
		j.breaker(open)
		if user.OnBreaker != nil {
			user.OnBreaker(open)
		}
	}
	return h
}

// count counts something for package admin, if that looks.
func (j *journal) count(key string, f func(*observe.Tally)) {
	if t := j.guard.observer.Load().tallyFor(&j.guard.kinds, key); t != nil {
		f(t)
	}
}

func (j *journal) warn(kind *throttled, what, key string, args ...any) {
	kind.log(context.Background(), j.guard.cfg.Logger, slog.LevelWarn, what, key, args...)
}

// breaker hears that one has opened or closed. On a cluster the outage is over when all are closed.
func (j *journal) breaker(open bool) {
	if open {
		if j.cuts.Add(1) == 1 {
			j.costs.failed.Store(j.failed.Load())
			j.costs.without.Store(j.without.Load())
		}
		j.outage.begin()
		return
	}
	if j.cuts.Add(-1) > 0 {
		return
	}
	j.outage.end(func() []any {
		return []any{
			"requests_failed", j.failed.Load() - j.costs.failed.Load(),
			"loads_without_redis", j.without.Load() - j.costs.without.Load(),
			"keys_owed", j.guard.owed(),
		}
	})
}

// owes hears that the set of pending invalidations has changed. The key is a new one; empty: there is none. A nil journal does
// nothing.
func (j *journal) owes(key string) {
	if j == nil {
		return
	}
	j.counting.Lock()
	defer j.counting.Unlock()
	owed := j.guard.owed()
	if owed > 0 {
		j.owedMax.Store(max(j.owedMax.Load(), int64(owed)))
	}
	if key != "" {
		j.owing.begin("keys", owed, "key", key)
	}
	if owed > 0 {
		return
	}
	most := j.owedMax.Swap(0)
	j.owing.end(func() []any { return []any{"keys", most} })
}

// subscribed hears whether messages arrive, and why not, as far as that is known.
func (j *journal) subscribed(live bool, why error) {
	switch {
	case live:
		j.deaf.end(nil)
		j.deaf.rename("subscription lost, waiting calls poll", "subscription back")
	case why != nil:
		j.deaf.begin("error", why)
	default:
		j.deaf.begin()
	}
}

// bypass hears whether the cache is bypassed, and until when; zero: until it is turned on again.
func (j *journal) bypass(on bool, until time.Time) {
	if !on {
		j.bypassed.end(func() []any { return []any{"loads", j.without.Load() - j.costs.bypassed.Load()} })
		return
	}
	if !j.bypassed.on() {
		j.costs.bypassed.Store(j.without.Load())
	}
	if until.IsZero() {
		j.bypassed.begin("where", "this instance")
	} else {
		j.bypassed.begin("where", "all instances", "until", until.Round(time.Second))
	}
}

// dropped hears that the local tier was emptied of that many entries. It does not hold up the subscription.
func (j *journal) dropped(entries int) {
	if entries > 0 {
		j.guard.life.Try(func() { // stop: the Logger's
			j.voided.log(context.Background(), j.guard.cfg.Logger, slog.LevelInfo,
				"local tier dropped, messages may have been missed", "", "entries", entries)
		})
	}
}

// forgotten notes that the epoch of all entries was removed, and not by this Guard. It does not hold up a Get.
func (j *journal) forgotten() {
	j.guard.life.Try(func() { // stop: the Logger's
		j.warn(&j.gone, "all entries are invalid or gone: redis lost its data, or evicted their epoch, or another instance called InvalidateAll", "")
	})
}

// stillRuns hears that a load has taken SlowLoad and goes on.
func (j *journal) stillRuns(key string) {
	j.warn(&j.still, "slow load, it still runs", key, "after", j.guard.cfg.SlowLoad)
}

// refusedBy hears that Redis answered with an error.
func (j *journal) refusedBy(op string, err error) {
	j.refused.Store(&refusal{time.Now(), op + ": " + err.Error()})
}

// stepped hears that a server's clock has stepped by that much.
func (j *journal) stepped(key string, by time.Duration) {
	j.warn(&j.step, "clock of redis stepped, or another server answers", key, "by", by.Round(time.Millisecond))
}

// troubles are for package admin.
func (j *journal) troubles() observe.Troubles {
	t := observe.Troubles{
		Outage: j.outage.lasting(), Owing: j.owing.lasting(), Deaf: j.deaf.lasting(), Saturated: j.saturated.lasting(),
		Bypassed: j.bypassed.lasting(),
	}
	if r := j.refused.Load(); r != nil {
		t.Refused, t.RefusedAs = r.at, r.text
	}
	return t
}

func (j *journal) close() {
	for _, e := range []*episode{&j.outage, &j.owing, &j.deaf, &j.saturated.episode, &j.fleetBusy.episode, &j.bypassed} {
		e.close()
	}
}
