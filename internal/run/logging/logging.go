// Package logging logs what may happen often.
package logging

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/errs"
)

// Every is how often a Guard, or a Cache of pages, logs things of one kind.
const Every = 10 * time.Second

// Of is a logger, whose lines say whose they are; nil: it says nothing.
func Of(to *slog.Logger, cache, instance string) *slog.Logger {
	if to == nil {
		to = slog.New(slog.DiscardHandler)
	}
	return to.With("cache", cache, "instance", instance)
}

// Throttle logs things of one kind, at most every ten seconds, because a failure may repeat with each call. The zero
// Throttle is ready.
type Throttle struct {
	last atomic.Int64 // when something was logged, in nanoseconds since 1970; 0: never
	held atomic.Int64 // how many were not, since then
}

// Text is a duration in a log, which has it in nanoseconds otherwise, if it is JSON.
func Text(d time.Duration) string {
	if d.Abs() < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// Log logs what happened to the key, if there is one.
func (t *Throttle) Log(ctx context.Context, logger *slog.Logger, level slog.Level, message, key string, args ...any) {
	now, last := time.Now().UnixNano(), t.last.Load()
	if last != 0 && now-last < int64(Every) || !t.last.CompareAndSwap(last, now) {
		t.held.Add(1)
		return
	}
	for i, arg := range args {
		if d, is := arg.(time.Duration); is {
			args[i] = Text(d)
		}
	}
	if key != "" {
		args = append([]any{"key", errs.Short(key)}, args...)
	}
	if held := t.held.Swap(0); held > 0 {
		args = append(args, "more", held) // like it, that were not logged
	}
	logger.Log(ctx, level, message, args...)
}
