package cacheguard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// rack is a source of things that tells how it was asked.
type rack struct {
	mu      sync.Mutex
	many    []int // keys of each call of LoadMany
	one     atomic.Int64
	begun   chan struct{}
	release chan struct{} // nil: calls return at once
	poison  int           // LoadMany fails if asked for it, and Load too
}

var errPoison = errors.New("this row cannot be read")

func (r *rack) config() CacheConfig[int, thing] {
	return CacheConfig[int, thing]{
		Name: "thing",
		Load: func(ctx context.Context, id int) (thing, error) {
			r.one.Add(1)
			if err := r.hold(ctx); err != nil {
				return thing{}, err
			}
			if id == r.poison {
				return thing{}, errPoison
			}
			return thing{ID: id}, nil
		},
		LoadMany: func(ctx context.Context, ids []int) (map[int]thing, error) {
			r.mu.Lock()
			r.many = append(r.many, len(ids))
			r.mu.Unlock()
			if r.begun != nil {
				r.begun <- struct{}{}
			}
			if err := r.hold(ctx); err != nil {
				return nil, err
			}
			if r.poison != 0 && slices.Contains(ids, r.poison) {
				return nil, errPoison
			}
			all := make(map[int]thing, len(ids))
			for _, id := range ids {
				all[id] = thing{ID: id}
			}
			return all, nil
		},
	}
}

// hold waits for release, if there is one.
func (r *rack) hold(ctx context.Context) error {
	if r.release == nil {
		return nil
	}
	select {
	case <-r.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *rack) calls() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.many)
}
