package watch

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/logging"
)

// Event is what happened. It is cacheguard.Event, which says more.
type Event struct {
	What               What
	Key, Kind, Outcome string
	Took               time.Duration
	On                 bool
	Err                error
	Attrs              []any
}

// What is a kind of event.
type What string

// The events that are more to a Journal than a line of the log.
const (
	Answered    What = "get"
	Breaker     What = "breaker"
	Rejected    What = "rejected"
	Damaged     What = "damaged"
	Dropped     What = "dropped"
	LeaseLost   What = "lease_lost"
	Unread      What = "unread"
	Gated       What = "gated"
	Unrefreshed What = "refresh_failed"
	Stepped     What = "stepped"
)

// line is what the Logger gets of an event.
type line struct {
	text  string
	level slog.Level
}

// ofEvents has the lines of all events that are counted.
var ofEvents = map[What]line{
	"takeover":     {"lease taken over from an instance that did not renew it", slog.LevelWarn},
	LeaseLost:      {"lease lost by a load that still runs: not renewed in time, or the key was invalidated meanwhile", slog.LevelWarn},
	"overtaken":    {"key was invalidated meanwhile, or redis has lost its lease: the load still runs", slog.LevelInfo},
	Rejected:       {"load may not store its value", slog.LevelWarn},
	Damaged:        {"entry cannot be decoded, it is loaded anew", slog.LevelWarn},
	Unread:         {"entry cannot be decoded, it stays for now and each call loads", slog.LevelWarn},
	"alien":        {"entry belongs to a Cache, whose methods read it: each Get, Fetch or GetMany loads its key", slog.LevelWarn},
	"unstorable":   {"value cannot be stored", slog.LevelWarn},
	"uncompressed": {"value is stored without compression", slog.LevelError},
	Gated:          {"call goes without the cache, Config.Gate says so", slog.LevelInfo},
	Unrefreshed:    {"background load failed", slog.LevelWarn},
	"panicked":     {"loader panicked", slog.LevelError},
	"slow_load":    {"slow load", slog.LevelWarn},
	"still_runs":   {"slow load, it still runs", slog.LevelWarn},
	"waits":        {"a load waits for an Update, whose write takes long or whose process has died", slog.LevelWarn},
	"closing":      {"Close waits for what does not end, such as a loader that ignores its context", slog.LevelWarn},
	Stepped:        {"clock of redis stepped, or another server answers", slog.LevelWarn},
	Dropped:        {"local tier dropped, messages may have been missed", slog.LevelInfo},
	"forgotten":    {"all entries are invalid or gone: redis lost its data, or evicted their epoch, or another process invalidated all: by InvalidateAll, or as its feed began", slog.LevelWarn},
	"observer":     {"an Observer panicked, what it does for the event may be missing from now on", slog.LevelError},
}

// Observe counts and logs what happened.
func (j *Journal) Observe(ctx context.Context, e Event) {
	switch of := j.events[e.What]; {
	case of != nil:
		j.tell(ctx, of, e)
	case e.What == Answered:
		j.View().Answered(e.Kind, e.Key, e.Outcome)
	case e.What == Breaker:
		j.breaker(e.On, e.Err)
	}
}

// event is how often one happened, and when it was logged.
type event struct {
	line
	logging.Throttle

	times atomic.Uint64
	why   atomic.Pointer[string] // the last time, where that is a decision of somebody's; nil: it is none
}

func (j *Journal) tell(ctx context.Context, of *event, e Event) {
	of.times.Add(1)
	j.View().Happened(e.Kind, string(e.What))
	by, attrs := &of.Throttle, e.Attrs
	switch {
	case e.What == Rejected, (e.What == LeaseLost || e.What == Dropped) && j.hasCause(): // is not logged, or that is
		return
	case e.What == Gated && e.Err != nil:
		why := ": " + errs.Short(e.Err.Error())
		of.why.Store(&why)
	case e.Kind != "" && (e.What == Damaged || e.What == Unread): // each Cache has a line
		by = &j.Kind(e.Kind).unread
	case e.What == Stepped && e.Took < 0: // a step back soon after one is news
		by = &j.steppedBack
	}
	if e.Err != nil {
		attrs = append(slices.Clip(attrs), "error", e.Err)
	}
	by.Log(ctx, j.cfg.Logger, of.level, "cacheguard: "+of.text, e.Key, attrs...)
}

// Happened is how often each event did that has. Of one that somebody has decided, the name has the last reason.
func (j *Journal) Happened() map[string]uint64 {
	all := make(map[string]uint64)
	for _, of := range j.events {
		name := of.text
		if why := of.why.Load(); why != nil {
			name += *why
		}
		if n := of.times.Load(); n > 0 {
			all[name] = n
		}
	}
	return all
}

// Times is how often an event happened.
func (j *Journal) Times(what What) uint64 { return j.events[what].times.Load() }
