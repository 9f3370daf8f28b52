package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
)

// step is what is invalidated at once.
type step struct {
	names cacheguard.Changes
	whole []*Table
}

// steps are what a batch names by the Order of its kinds: each is invalidated when Redis has acknowledged the one before. Tags, and Guards that
// are invalidated whole, may have values of all kinds, and are in each.
func (e *Engine) steps(names cacheguard.Changes, whole []*Table) []step {
	if len(e.Order) == 0 {
		return []step{{names, whole}}
	}
	steps := make([]step, len(e.Order))
	for _, key := range names.Keys {
		kind, _, _ := strings.Cut(key, ":")
		s := &steps[max(placeOf(e.Order, kind), 0)]
		s.names.Keys = append(s.names.Keys, key)
	}
	for at := range steps {
		steps[at].names.Tags = names.Tags
		for _, t := range whole {
			of := *t
			of.Kinds = slices.DeleteFunc(slices.Clone(t.Kinds), func(k cdc.Kind) bool { return max(placeOf(e.Order, k.Name()), 0) != at })
			if len(of.Kinds)+len(of.guards) > 0 {
				steps[at].whole = append(steps[at].whole, &of)
			}
		}
	}
	return steps
}

// placeOf is where the kind of the name is in the order; -1: nowhere.
func placeOf(order []cdc.Kind, name string) int {
	return slices.IndexFunc(order, func(k cdc.Kind) bool { return k != nil && k.Name() == name })
}

// invalidate invalidates a step, in all Guards, and returns nil when Redis has acknowledged all of it. Running twice does no harm.
func (e *Engine) invalidate(ctx context.Context, names cacheguard.Changes, whole []*Table) error {
	guards, keys, tags := e.Guards, names.Keys, names.Tags
	var calls []func() error
	ofKeys, ofTags := ctx, ctx
	if len(guards) > 1 {
		ofKeys, ofTags = inAll(ctx, len(guards)), inAll(ctx, len(guards))
	}
	for _, g := range guards {
		if len(keys) > 0 {
			calls = append(calls, func() error { return g.Invalidate(ofKeys, keys...) })
		}
		if len(tags) > 0 {
			calls = append(calls, func() error { return g.InvalidateTags(ofTags, tags...) })
		}
	}
	entire, kinds := wholeOf(whole)
	for _, g := range entire {
		calls = append(calls, func() error { return g.InvalidateAll(ctx) })
	}
	for _, kind := range kinds {
		calls = append(calls, func() error { return kind.InvalidateAll(ctx) })
	}
	return together(calls)
}

// wholeOf returns the Guards and the Kinds to invalidate whole for some tables.
func wholeOf(tables []*Table) (guards []*cacheguard.Guard, kinds []cdc.Kind) {
	for _, t := range tables {
		for _, g := range t.guards {
			if !slices.Contains(guards, g) {
				guards = append(guards, g)
			}
		}
	}
	for _, t := range tables {
		for _, kind := range t.Kinds {
			if !slices.Contains(guards, kind.Guard()) && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return guards, kinds
}

// together makes the calls side by side, and returns when all have returned.
func together(calls []func() error) error {
	errs := make([]error, len(calls))
	var all sync.WaitGroup
	for i, call := range calls {
		if i > 0 {
			all.Go(func() { errs[i] = call() }) // owner: this call; stop: the Guard's RedisTimeout; joined below
		}
	}
	if len(calls) > 0 {
		errs[0] = calls[0]()
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return brief{err}
	}
	return nil
}

// brief shortens an error that joins one for each of thousands of keys: its text is the first one's.
type brief struct{ error }

func (b brief) Error() string {
	text := b.error.Error()
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return text
	}
	return fmt.Sprintf("%s (and %d more)", first, strings.Count(rest, "\n")+1)
}

func (b brief) Unwrap() error { return b.error }

// Unmappable notes a changed row whose keys are not known. The log gets a line for the first one, and one every now and then after that.
func (e *Engine) Unmappable(op cdc.Op, err error) {
	e.mu.Lock()
	e.stats.Unmapped++
	e.unmapped++
	rows, now := e.unmapped, time.Now()
	e.stats.UnmappedAt = now
	says := now.Sub(e.unmappedSaid) >= sayAgain
	if says {
		e.unmapped, e.unmappedSaid = 0, now
	}
	e.mu.Unlock()
	if says {
		e.Log.Error("cdc: the keys of a changed row are not known, so the kinds of its table are invalidated whole", "error", err, "statement", op, "rows", rows)
	}
}

// Try calls Changed of a table as changes of each kind do, with rows that do not exist, and returns what it asks for that the log will not have. before and
// after make such rows, whose columns have values of the right types. Other errors do not count, as it is no wonder that Changed makes nothing of these rows.
func (t *Table) Try(before, after func() cdc.Row) error {
	for _, c := range []cdc.Change{{Op: cdc.Insert, New: after()}, {Op: cdc.Update, Old: before(), New: after()}, {Op: cdc.Delete, Old: before()}} {
		_, err := t.Changes(c)
		if errors.As(err, new(*cdc.ColumnError)) {
			return err
		}
	}
	return nil
}
