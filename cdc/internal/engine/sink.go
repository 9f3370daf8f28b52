package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
)

// invalidate invalidates what a batch names, in all Guards, and returns nil when Redis has acknowledged all of it. Running twice does no harm.
func invalidate(ctx context.Context, guards []*cacheguard.Guard, keys, tags []string, whole []*Table) error {
	var calls []func() error
	if len(keys) > 0 || len(tags) > 0 {
		for _, g := range guards {
			if len(keys) > 0 {
				calls = append(calls, func() error { return g.Invalidate(ctx, keys...) })
			}
			if len(tags) > 0 {
				calls = append(calls, func() error { return g.InvalidateTags(ctx, tags...) })
			}
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
