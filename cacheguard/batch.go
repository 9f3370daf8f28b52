package cacheguard

import (
	"context"
	"slices"
	"sync"

	"github.com/cacheguard/go/cacheguard/internal/limit"
)

// maxScripts is how many keys of a batch ask for their leases at once.
const maxScripts = 256

// batch is the one load call of a GetMany. Each of its keys has a flight, as for a Get: Gets and other batches may join the
// flight, and it asks for the key's lease. A flight that gets its lease calls obtain; one that finds nothing to load calls
// skip. When every flight has done one or the other, the batch loads the wanted keys in one call.
type batch struct {
	guard *Guard
	load  func(ctx context.Context, keys []string) (map[string]any, error) // *V by key
	slot  limit.Slot

	policy *policy // of the keys

	scriptSlots chan struct{} // to ask for a lease, so that one call does not hold up others with thousands of requests

	ctx     context.Context //nolint:containedctx // of the call: ends when nobody waits for it any more
	cancel  context.CancelFunc
	loading *loading
	done    chan struct{} // closed when the result is set
	result  map[string]any
	err     error

	mu      sync.Mutex
	open    map[string]struct{} // keys whose flights have neither obtained nor skipped
	waiting int                 // flights that wait for the result
	started bool                // the load was
}

// newBatch makes the batch of the keys, which has the slot.
func newBatch(ctx context.Context, g *Guard, keys []string, s limit.Slot, p *policy,
	load func(context.Context, []string) (map[string]any, error),
) *batch {
	b := &batch{
		guard: g, load: load, slot: s, policy: p, loading: newLoading(ctx, &g.loaders),
		scriptSlots: make(chan struct{}, maxScripts),
		done:        make(chan struct{}), open: make(map[string]struct{}, len(keys)),
	}
	for _, key := range keys {
		b.open[key] = struct{}{}
	}
	b.ctx, b.cancel = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), loadingKey{}, b.loading))
	return b
}

// takeScriptSlot waits until one of the batch's flights may ask for its lease.
func (b *batch) takeScriptSlot(ctx context.Context) (done func(), err error) {
	select {
	case b.scriptSlots <- struct{}{}:
		return func() { <-b.scriptSlots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// covers reports whether the batch's slot is good for the key.
func (b *batch) covers(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, open := b.open[key]
	return open
}

// skip says that the key's flight does not want a value from the batch.
func (b *batch) skip(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeLocked(key)
}

// obtain is the loader of the key's flight.
func (b *batch) obtain(ctx context.Context, key string) (any, error) {
	b.mu.Lock()
	_, inTime := b.open[key]
	if inTime {
		b.loading.keys = append(b.loading.keys, key)
		b.waiting++
		b.closeLocked(key)
	}
	b.mu.Unlock()
	if !inTime { // it had skipped, and got the lease later
		values, err := b.load(ctx, []string{key})
		return pick(key, values, err)
	}
	defer b.leave(key)
	select {
	case <-b.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	loadingOf(ctx).ttl.Store(b.loading.ttl.Load())
	loadingOf(ctx).addTags(b.loading.allTags())
	return pick(key, b.result, b.err)
}

// pick returns the result of a load call for one key.
func pick(key string, values map[string]any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if value, ok := values[key]; ok {
		return value, nil
	}
	return nil, ErrNotFound
}

// closeLocked removes the key from the open ones. After the last one it starts the load, if there is anything to
// load.
func (b *batch) closeLocked(key string) {
	if _, open := b.open[key]; !open {
		return
	}
	delete(b.open, key)
	switch {
	case len(b.open) > 0:
	case len(b.loading.keys) == 0:
		b.cancel()
		b.guard.loaders.limits.Free(b.slot)
	default:
		b.started = true
		b.guard.life.Go(b.run) // owner: the Guard; stop: b.cancel; joined by Close
	}
}

// leave is called by a flight that does not wait any more. The last one to leave cancels the load. Before the load has
// started, leave only removes the key from it, because other flights have yet to obtain theirs.
func (b *batch) leave(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
	switch {
	case !b.started:
		b.loading.keys = slices.DeleteFunc(b.loading.keys, func(k string) bool { return k == key })
	case b.waiting == 0:
		b.cancel()
	}
}

func (b *batch) run() {
	defer b.guard.loaders.limits.Free(b.slot)
	defer close(b.done)
	b.guard.loaders.running.Add(1)
	defer b.guard.loaders.running.Add(-1)
	b.policy.countRunning(1)
	defer b.policy.countRunning(-1)
	ctx, cancel := b.guard.loaders.withTimeout(b.ctx, b.loading.keys[0])
	defer cancel()
	ctx, end := b.guard.cfg.Hooks.beginMany(ctx, TaskLoad, b.loading.keys)
	shown := b.guard.journal.Observer.Load().LoadBegins(b.loading.keys[0], len(b.loading.keys))
	b.guard.loaders.protect(ctx, b.loading.keys[0], func() (err error) {
		b.result, err = b.load(ctx, b.loading.keys)
		return err
	}, func(err error) {
		end(End{Err: err})
		b.guard.journal.Observer.Load().LoadEnds(shown, failed(err))
		b.err = err
	})
}
