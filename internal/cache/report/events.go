package report

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// What has happened, as the Logger gets it; most of it to a key.
type What string

// The events.
const (
	Takeover     What = "lease taken over from an instance that did not renew it"
	LeaseLost    What = "lease lost by a load that still runs: not renewed in time, or the key was invalidated meanwhile"
	Overtaken    What = "key was invalidated meanwhile, or redis has lost its lease: the load still runs"
	Rejected     What = "load may not store its value" // not logged
	Damaged      What = "entry cannot be decoded, it is loaded anew"
	Unread       What = "entry cannot be decoded, it stays for now and each call loads"
	Alien        What = "entry belongs to a Cache, whose methods read it: each Get, Fetch or GetMany loads its key"
	Unstorable   What = "value cannot be stored"
	Uncompressed What = "value is stored without compression"
	Altered      What = "value does not come back from its Codec as it was: callers get different values"
	AlteredAgain What = "the same, which is no news" // not logged
	Unrefreshed  What = "background load failed"     // no caller sees the error
	Unreplaced   What = "key was removed, it could not be replaced"
	Kept         What = "key was not replaced, as redis is unavailable or slow, or could not be told" // not logged: that is
	Removed      What = "key was removed, it is not replaced by design: this is logged once for a Cache, and counted"
	RemovedAgain What = "key was removed by design, which is no news" // not logged
	Outdated     What = "cached value is not that of the source, a write did not invalidate it"
	Behind       What = "cached value is not that of the source, an invalidation may be late, or a write did not invalidate it"
	Panicked     What = "loader panicked"
	Slow         What = "slow load"
	StillRuns    What = "slow load, it still runs"
	Waits        What = "a load waits for an Update, whose write takes long or whose process has died"
	Closing      What = "Close waits for what does not end, such as a loader that ignores its context"
	Stepped      What = "clock of redis stepped, or another server answers"
	Dropped      What = "local tier dropped, messages may have been missed"
	Forgotten    What = "all entries are invalid or gone: redis lost its data, or evicted their epoch, or another process invalidated all: by InvalidateAll, or as its feed began"
)

// happened is how often an event did, and when it was logged.
type happened struct {
	Throttle

	times atomic.Uint64
}

func (j *Journal) event(what What) *happened {
	e, known := j.events.Load(what)
	if !known {
		e, _ = j.events.LoadOrStore(what, new(happened))
	}
	return e.(*happened) //nolint:forcetypeassert // nothing else is stored
}

// Tell tells the Logger and Stats of an event, with an error, if there is one. The attributes say more.
func (j *Journal) Tell(ctx context.Context, what What, key string, err error, attrs ...any) {
	j.TellBy(ctx, nil, what, key, err, attrs...)
}

// TellBy is Tell with a Throttle of the caller's own; nil: that of the event.
func (j *Journal) TellBy(ctx context.Context, by *Throttle, what What, key string, err error, attrs ...any) {
	e, level := j.event(what), slog.LevelWarn
	e.times.Add(1)
	if by == nil {
		by = &e.Throttle
	}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	log := func() { by.Log(ctx, j.cfg.Logger, level, "cacheguard: "+string(what), key, attrs...) }
	switch what {
	case Rejected, AlteredAgain, RemovedAgain, Kept:
		return
	case Uncompressed, Panicked:
		level = slog.LevelError
	case Overtaken, Removed, Dropped:
		level = slog.LevelInfo
	}
	if what == Dropped || what == Forgotten { // which must hold up neither the subscription nor a Get
		j.cfg.Background(log) // stop: the Logger's
		return
	}
	log()
}

// Happened is how often each event did that has.
func (j *Journal) Happened() map[string]uint64 {
	all := make(map[string]uint64)
	j.events.Range(func(what, e any) bool {
		if n := e.(*happened).times.Load(); n > 0 { //nolint:forcetypeassert // nothing else is stored
			all[string(what.(What))] = n //nolint:forcetypeassert // the same
		}
		return true
	})
	return all
}

// Times is how often an event happened.
func (j *Journal) Times(what What) uint64 { return j.event(what).times.Load() }
