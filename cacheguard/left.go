package cacheguard

import (
	"context"
)

// A loader that ignores its context outlives those who waited for it: they have left, or were told that LoadTimeout is
// over. It keeps its slot, and a key has one loader in an instance, however many callers give up on it one after the
// other. So who comes later waits, without a slot and without the lease, until it has returned, or for LoadTimeout, and
// then loads: what it returns may be older than an invalidation since, and goes to nobody. Its lease has been given up,
// so other instances may load meanwhile, and a value of theirs is read first.

// loadedKey is a key that a loader loads.
type loadedKey struct {
	kind *kind
	key  string
}

func (l *loading) loadedKey() loadedKey { return loadedKey{l.kind, l.keys[0]} }

// keep notes a load, whose callers' context this is, until its loader has returned.
func (l *loaders) keep(ctx context.Context, load *loading) {
	at := load.loadedKey()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = make(map[loadedKey]*loading)
	}
	load.callers, load.beside, l.keys[at] = ctx, l.keys[at], load
}

// drop forgets a load whose loader has returned, or does not run.
func (l *loaders) drop(load *loading) {
	at := load.loadedKey()
	l.mu.Lock()
	defer l.mu.Unlock()
	if load.returned != nil {
		close(load.returned)
	}
	first := l.keys[at]
	place := &first
	for *place != load {
		place = &(*place).beside
	}
	if *place = load.beside; first == nil {
		delete(l.keys, at)
	} else {
		l.keys[at] = first
	}
}

// left returns what is closed when a loader of the key returns that nobody waits for any more; nil: none runs.
func (l *loaders) left(k *kind, key string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	for load := l.keys[loadedKey{k, key}]; load != nil; load = load.beside {
		if load.callers.Err() == nil && !load.told.Load() {
			continue
		}
		if load.returned == nil {
			load.returned = make(chan struct{})
		}
		return load.returned
	}
	return nil
}

// isLoading reports whether a loader of the key runs that somebody waits for.
func (l *loaders) isLoading(k *kind, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	load := l.keys[loadedKey{k, key}]
	return load != nil && load.callers.Err() == nil
}

// awaitLeft waits until no such loader runs. A batch does not wait for the key meanwhile.
func (l *loaders) awaitLeft(ctx context.Context, j *load) error {
	left := l.left(j.policy.kind, j.key)
	if left == nil {
		return nil
	}
	j.skip()
	ctx, cancel := l.withTimeout(ctx, j.key)
	defer cancel()
	for ; left != nil; left = l.left(j.policy.kind, j.key) {
		select {
		case <-left:
		case <-ctx.Done():
			return l.gaveUp(ctx)
		}
	}
	return nil
}
