// Package engine is what the feeds share: it turns changes of rows into invalidations, repeats them until Redis has acknowledged them, and says then which
// position may be confirmed. It does not know where changes come from.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/run/logging"
	"github.com/cacheguard/go/internal/watch/observe"
)

const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
	fewest     = 50               // names of a piece
	sayAgain   = 10 * time.Second // in the log, that a trouble lasts
)

// Engine invalidates for a feed.
type Engine struct {
	Tables Tables
	Guards []*cacheguard.Guard
	Order  []cdc.Kind // in which they are invalidated; none: at once
	Log    *slog.Logger

	mu       sync.Mutex
	stats    cdc.Stats
	current  time.Time // everything before it is invalidated; zero: not known yet
	began    time.Time // the reading
	trouble  time.Time // began; zero: there is none
	said     time.Time // in the log
	standsBy time.Time // since when another instance reads, or tries to; zero: none does
	running  bool

	standing     error     // a trouble that lasts although changes are invalidated
	unmapped     int       // rows since
	unmappedSaid time.Time // the log had a line about one
}

// Logger is the Logger of a feed; nil: one that says nothing. Its lines say whose they are.
func Logger(to *slog.Logger, guards []*cacheguard.Guard) *slog.Logger {
	var of observe.Guard
	var caches []string
	for _, g := range guards {
		of, _ = observe.Look[observe.Guard](g)
		caches = append(caches, of.Prefix)
	}
	return logging.Of(to, strings.Join(caches, ","), of.Instance)
}

// errRunning is returned by a second Run.
var errRunning = errors.New("cdc: the feed runs already")

// Start begins a Run. The caller calls end when it is over.
func (e *Engine) Start() (end func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return nil, errRunning
	}
	e.running = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.running, e.stats.Reading = false, false
	}, nil
}

// Stats are the figures of now.
func (e *Engine) Stats() cdc.Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	since := e.current
	if since.IsZero() {
		since = e.began
	}
	if s.Reading {
		s.Behind = max(time.Since(since), 0)
	}
	return s
}

// Reading notes whether this instance reads the log. Everything committed before since is known to be invalidated; zero: nothing is known.
func (e *Engine) Reading(on bool, since time.Time) {
	e.mu.Lock()
	changed := e.stats.Reading != on
	e.stats.Reading, e.current, e.began = on, since, time.Now()
	e.mu.Unlock()
	if changed {
		e.Log.Info(map[bool]string{true: "cdc: reads the log", false: "cdc: no longer reads the log"}[on])
	}
}

// CaughtUp notes that everything that was committed before a moment is invalidated.
func (e *Engine) CaughtUp(until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if until.After(e.current) {
		e.current = until
	}
}

// Lag notes how much of the log is not invalidated, and how much is kept.
func (e *Engine) Lag(behind, retained int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.BehindBytes, e.stats.Retained = max(behind, 0), max(retained, 0)
}

// Held notes who keeps the database from forgetting its log, and for how long; empty: nobody but the feed.
func (e *Engine) Held(by string, since time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.HeldBy, e.stats.HeldFor = by, since
}

// Reconnected notes that reading has ended with an error.
func (e *Engine) Reconnected() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Reconnects++
}

// Trouble notes an error, and nil its end. The log gets a line when it begins, one every now and then while it lasts, as it may be another one by then, and
// one when it is over.
func (e *Engine) Trouble(err error) {
	e.mu.Lock()
	if err == nil {
		err = e.standing
	}
	now, since := time.Now(), e.trouble
	e.stats.Err, e.standsBy = err, time.Time{}
	over := err == nil && !since.IsZero()
	says := err != nil && now.Sub(e.said) >= sayAgain
	switch {
	case over:
		e.trouble, e.said = time.Time{}, time.Time{}
	case says:
		e.said = now
		if since.IsZero() {
			e.trouble = now
		}
	}
	e.mu.Unlock()
	if over {
		e.Log.Info("cdc: changes are invalidated again", "lasted", now.Sub(since).Round(time.Millisecond).String())
	}
	if says {
		e.Log.Error("cdc: changes wait to be invalidated", "error", err)
	}
}

// StandsBy notes that another instance reads the log, or tries to. A trouble is over when that has lasted: each instance
// in turn tries to read what none can.
func (e *Engine) StandsBy() {
	e.mu.Lock()
	if e.standsBy.IsZero() {
		e.standsBy = time.Now()
	}
	calm := e.trouble.IsZero() || time.Since(e.standsBy) >= sayAgain
	e.mu.Unlock()
	if calm {
		e.Trouble(nil)
	}
}

// Stands notes a trouble that lasts although changes are invalidated, and nil its end.
func (e *Engine) Stands(err error) {
	e.mu.Lock()
	e.standing = err
	e.mu.Unlock()
	e.Trouble(nil)
}

// Whole invalidates the kinds of all tables, because the position in the log is lost. It tries once, so the caller can release its
// slot or lock between two attempts.
func (e *Engine) Whole(ctx context.Context, why string) error {
	return e.WholeOf(ctx, why, e.Tables.All())
}

// WholeOf is Whole for some tables.
func (e *Engine) WholeOf(ctx context.Context, why string, tables []*Table) error {
	what := "all mapped kinds"
	if len(tables) < len(e.Tables) {
		what = "kinds"
	}
	if err := e.Invalidate(ctx, cacheguard.Changes{}, tables); err != nil {
		return fmt.Errorf("cdc: invalidate %s, because %s: %w", what, why, err)
	}
	e.Log.Warn("cdc: "+what+" are invalidated whole", "why", why)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Whole++
	return nil
}

// Steps are what a feed does around the invalidations of an Applier.
type Steps[P any] struct {
	// Settle returns when every new read of the database sees the transactions with the marks. nil: they all do.
	Settle func(ctx context.Context, marks []uint64) error
	// Confirm notes that everything before the position is invalidated. It runs beside the invalidations that follow, and has only the last position then.
	Confirm func(ctx context.Context, until P) error
}

// Applier invalidates what is put into it, in the order of putting.
type Applier[P any] struct {
	engine     *Engine
	steps      Steps[P]
	queue      *queue[P]
	until      chan P // has the last position that is to be confirmed
	invalidate func(ctx context.Context, names cacheguard.Changes, whole []*Table) error
}

// NewApplier makes one for a single reading of the log.
func NewApplier[P any](e *Engine, steps Steps[P]) *Applier[P] {
	return &Applier[P]{engine: e, steps: steps, queue: newQueue[P](), until: make(chan P, 1), invalidate: e.invalidate}
}

// Put adds a part. It waits while too much waits to be invalidated.
func (a *Applier[P]) Put(ctx context.Context, part *Part[P]) error { return a.queue.put(ctx, part) }

// Run invalidates until ctx ends, or until an error that repeating does not mend.
func (a *Applier[P]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both sync.WaitGroup
	for _, part := range []func(context.Context) error{a.applyAll, a.confirmAll} {
		both.Go(func() { cancel(part(ctx)) }) // owner: this call; stop: ctx; joined below. The first error ends the other
	}
	both.Wait()
	return context.Cause(ctx)
}

func (a *Applier[P]) confirmAll(ctx context.Context) error {
	for {
		select {
		case until := <-a.until:
			if err := a.steps.Confirm(ctx, until); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *Applier[P]) applyAll(ctx context.Context) error {
	for {
		part, err := a.queue.take(ctx)
		if err != nil {
			return err
		}
		if err := a.apply(ctx, part); err != nil {
			return err
		}
	}
}

func (a *Applier[P]) apply(ctx context.Context, part *Part[P]) error {
	part.Dedupe()
	if a.steps.Settle != nil && len(part.Marks) > 0 {
		if err := a.steps.Settle(ctx, part.Marks); err != nil {
			return err
		}
	}
	for _, s := range a.engine.steps(part.Names, part.Whole) {
		if err := a.persist(ctx, s); err != nil {
			return err
		}
	}
	a.engine.Applied(part.Rows, part.Transactions, len(part.Names.Keys)+len(part.Names.Tags), len(part.Whole), part.Committed)
	if part.Ends {
		select {
		case <-a.until: // a later one takes its place
		default:
		}
		a.until <- part.Until
	}
	return nil
}

// persist invalidates until Redis has acknowledged all of a step. A Redis that is slow or far away may not manage thousands of names in one RedisTimeout, so
// what fails is tried again in smaller pieces.
func (a *Applier[P]) persist(ctx context.Context, s step) error {
	left, whole, size, pause := s.names, s.whole, len(s.names.Keys)+len(s.names.Tags)+len(s.whole), firstPause
	for len(left.Keys)+len(left.Tags)+len(whole) > 0 {
		piece, rest := cut(left, size)
		err := a.invalidate(ctx, piece, whole)
		if err == nil {
			left, whole, pause = rest, nil, firstPause
			continue
		}
		if errors.Is(err, cacheguard.ErrClosed) {
			return err
		}
		if ctx.Err() == nil {
			a.engine.Trouble(fmt.Errorf("cdc: invalidate: %w", err))
		}
		if err := Sleep(ctx, pause); err != nil {
			return err
		}
		size, pause = max(size/2, fewest), min(2*pause, maxPause)
	}
	return nil
}

// cut returns the first names, at most that many, and the others.
func cut(names cacheguard.Changes, size int) (piece, rest cacheguard.Changes) {
	k := min(size, len(names.Keys))
	t := min(size-k, len(names.Tags))
	return cacheguard.Changes{Keys: names.Keys[:k], Tags: names.Tags[:t]}, cacheguard.Changes{Keys: names.Keys[k:], Tags: names.Tags[t:]}
}

// Invalidate invalidates names, and whole tables, in their order, and returns nil when Redis has acknowledged all of it. It tries once.
func (e *Engine) Invalidate(ctx context.Context, names cacheguard.Changes, whole []*Table) error {
	for _, s := range e.steps(names, whole) {
		if err := e.invalidate(ctx, s.names, s.whole); err != nil {
			return err
		}
	}
	return nil
}

// Applied notes what was invalidated; everything committed before until is. That ends a trouble.
func (e *Engine) Applied(rows, transactions, names, whole int, until time.Time) {
	e.Trouble(nil)
	if whole > 0 {
		e.Log.Warn("cdc: kinds are invalidated whole", "why", "it is not known which rows have changed, as after a TRUNCATE, or when a key cannot be made")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Rows += uint64(rows)                 // a length
	e.stats.Transactions += uint64(transactions) // a number of them
	e.stats.Invalidations += uint64(names)       // a length
	if whole > 0 {
		e.stats.Whole++
	}
	if until.After(e.current) {
		e.current = until
	}
}

// Sleep waits for about so long, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
