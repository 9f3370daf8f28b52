package cacheguard

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/cache/gather"
	"github.com/cacheguard/go/internal/cache/limit"
)

// How many keys of a batch ask for their leases at once: fewer where Redis is near, and the processor is what keeps
// others waiting.
const (
	maxScripts     = 256
	maxScriptsNear = 64
)

// batch is the one load call of a GetMany. Each of its keys has a flight, as for a Get: Gets and other batches may join
// the flight, and it asks for the key's lease. A flight that gets its lease calls obtain; one that finds nothing to
// load calls skip. When every flight has done one or the other, the batch loads the wanted keys in one call (package
// gather).
type batch struct {
	*gather.Call

	guard   *Guard
	policy  *policy // of the keys
	load    batchLoad
	loading *loading

	scriptSlots chan struct{} // to ask for a lease, so that one call does not hold up others with thousands of requests
}

// batchLoad loads values, as *V, by key.
type batchLoad func(ctx context.Context, keys []string) (map[string]any, error)

// open makes the call of the batch.
func (b *batch) open(ctx context.Context, s limit.Slot, keys []string) *batch {
	loaders, scripts := &b.guard.loaders, maxScripts
	if b.guard.link.RoundTrip(keys[0]) < readFirst {
		scripts = maxScriptsNear
	}
	b.loading, b.scriptSlots = newLoading(ctx, loaders, b.policy.kind), make(chan struct{}, scripts)
	b.Call = gather.New(context.WithValue(context.WithoutCancel(ctx), loadingKey{}, b.loading), gather.Config{
		Run: b.run, Go: b.guard.life.Go, // owner: the Guard; stop: its context ends when nobody waits; joined by Close
		Free: func() { loaders.limits.Free(s) },
		Limit: func(ctx context.Context, keys []string) (context.Context, context.CancelFunc) {
			return loaders.withTimeout(ctx, keys[0])
		},
	}, keys...)
	return b
}

// obtain is the loader of the key's flight.
func (b *batch) obtain(ctx context.Context, key string) (any, error) {
	got, ok := b.Obtain(ctx, key)
	if got.Runs {
		loadingOf(ctx).until = b.Returned
	}
	if !ok { // it got the lease later, and has a slot of its own
		return b.loadOne(ctx, key)
	}
	var late *loadTimeout
	if errors.As(got.Err, &late) {
		got.Err = &loadTimeout{key, late.limit}
	}
	loadingOf(ctx).ttl.Store(b.loading.ttl.Load())
	loadingOf(ctx).addTags(b.loading.allTags())
	if got.Err == nil && !got.Found {
		got.Err = ErrNotFound
	}
	return got.Value, got.Err
}

func (b *batch) loadOne(ctx context.Context, key string) (any, error) {
	values, err := b.load(ctx, []string{key})
	if value, found := values[key]; found || err != nil {
		return value, err
	}
	return nil, ErrNotFound
}

// run is the call itself.
func (b *batch) run(ctx context.Context, keys []string, finish func(map[string]any, error)) {
	first := keys[0]
	var values map[string]any
	b.loading.keys = append(b.loading.keys, keys...)
	ctx = b.loading.begin(ctx)
	returned := make(chan struct{})
	defer close(returned)
	defer b.guard.loaders.tellIfSlow(first)()
	defer context.AfterFunc(ctx, func() { outlives(&b.guard.loaders, first, context.Cause(ctx), returned) })()
	b.guard.loaders.protect(ctx, first, func() (err error) {
		values, err = b.load(ctx, keys)
		return b.policy.absent(err)
	}, func(err error) {
		b.loading.end(err)
		finish(values, err)
	})
}
