package intent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// ErrDone is why an intent takes no more names.
var ErrDone = errors.New("cacheguard: intent is done")

// Intent is a dead man's switch around a transaction.
type Intent struct {
	of    *Intents
	text  string // what Redis has of it: a random text, since when it stands by the clock of this process in ms, the instance
	since time.Time

	mu     sync.Mutex
	stands map[*standing]map[string]*stand // by what they stand on, and then by key or id
	tags   map[string]struct{}
	timer  *time.Timer   // fires when Timeout is over
	over   bool          // nothing is renewed any more
	called bool          // Done was
	done   chan struct{} // closed when Done has an answer
	err    error         // which is this
}

// Announce lets the intent stand on what is named.
func (in *Intent) Announce(ctx context.Context, keys, tags []string) error {
	of := in.of
	of.Named(keys, tags)
	added, err := in.add(keys, tags)
	if err != nil || len(added) == 0 || of.InProcess != nil {
		return err
	}
	placed := make(chan error, 1)
	of.Life.Go(func() { // owner: the Guard; stop: RedisTimeout for each batch; joined by Close
		err := in.place(ctx, added, of.Anyway)
		if of.Anyway {
			err = nil // it was reported, and is tried again until Done
		}
		placed <- errs.Join(err, in.ended())
	})
	select {
	case err := <-placed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cacheguard: intend: %w", context.Cause(ctx))
	}
}

// add notes what is named, so that Done invalidates it, and returns what Redis is not known to have: what is new, and what was named by a call
// that failed, or has no answer yet.
func (in *Intent) add(keys, tags []string) (added []*stand, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.endedLocked(); err != nil {
		return nil, err
	}
	added = in.addLocked(added, &in.of.onKeys, keys)
	names := make([]string, len(tags))
	for i, tag := range tags {
		in.tags[tag], names[i] = struct{}{}, epoch.OfTag(tag)
	}
	return in.addLocked(added, &in.of.onTags, in.of.OfEpochs.InAllParts(names)), nil
}

func (in *Intent) addLocked(added []*stand, on *standing, ids []string) []*stand {
	if in.stands[on] == nil {
		in.stands[on] = make(map[string]*stand)
	}
	for _, id := range ids {
		s := in.stands[on][id]
		if s == nil {
			s = &stand{intent: in, on: on, id: id}
			in.stands[on][id] = s
		}
		if !s.placed {
			added = append(added, s)
		}
	}
	return added
}

// ended is why the intent can take nothing more; nil: it can.
func (in *Intent) ended() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.endedLocked()
}

func (in *Intent) endedLocked() error {
	switch {
	case in.called:
		return ErrDone
	case in.over:
		return in.overdue()
	}
	return nil
}

func (in *Intent) overdue() error {
	return fmt.Errorf("cacheguard: intent stood for longer than UpdateTimeout (%v): %w", in.of.Timeout, lifecycle.ErrLeaseLost)
}

// Done invalidates what was named, and ends the intent, even if ctx has ended. A second one returns what the first did.
func (in *Intent) Done(ctx context.Context) error {
	in.mu.Lock()
	first, overdue := !in.called, in.over
	in.called = true
	in.mu.Unlock()
	if first {
		in.finish(ctx, overdue)
	}
	<-in.done // RedisTimeout bounds the wait
	return in.err
}

func (in *Intent) finish(ctx context.Context, overdue bool) {
	in.Stop()
	defer close(in.done)
	if !in.of.Life.Begin() {
		in.err = in.of.Closed
		return
	}
	defer in.of.Life.Done()
	in.err = in.invalidate(ctx)
	if overdue {
		in.err = errs.Join(in.err, in.overdue())
	}
}

// expire ends an intent that nobody has ended in time.
func (in *Intent) expire() {
	in.mu.Lock()
	called := in.called
	in.mu.Unlock()
	if called {
		return
	}
	in.of.mu.Lock()
	in.of.late = true
	in.of.mu.Unlock()
	if !in.Stop() {
		return
	}
	in.of.Life.Try(func() { // stop: RedisTimeout for each batch
		in.of.Logger.LogAttrs(context.Background(), slog.LevelWarn, "cacheguard: intent stood for longer than UpdateTimeout, its changes are invalidated now",
			slog.String("for", time.Since(in.since).Round(time.Millisecond).String()))
		_ = in.invalidate(context.Background()) // what fails is pending, and Done invalidates once more
	})
}

// Stop ends the renewals, and reports whether it was the first to do so.
func (in *Intent) Stop() bool {
	in.of.remove(in)
	in.mu.Lock()
	defer in.mu.Unlock()
	first := !in.over
	in.over = true
	if in.timer != nil {
		in.timer.Stop()
	}
	for _, some := range in.stands {
		for _, s := range some {
			if s.renewal != nil {
				in.of.Keeper.Drop(s.renewal)
			}
		}
	}
	return first
}
