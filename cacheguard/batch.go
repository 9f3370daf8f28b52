package cacheguard

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/cache/gather"
	"github.com/cacheguard/go/internal/cache/limit"
)

// maxScripts is how many keys of a batch ask for their leases at once.
const maxScripts = 256

// batch is the one load call of a GetMany, or of Gets that a Cache gathers. Each of its keys has a flight, as for a Get: Gets and other
// batches may join the flight, and it asks for the key's lease. A flight that gets its lease calls obtain; one that finds nothing to load
// calls skip. When every flight has done one or the other, the batch loads the wanted keys in one call (package gather).
type batch struct {
	*gather.Call

	guard   *Guard
	policy  *policy // of the keys
	load    batchLoad
	one     func(ctx context.Context, of gather.Member) (any, error) // of one key; nil: load serves
	loading *loading

	scriptSlots chan struct{} // to ask for a lease, so that one call does not hold up others with thousands of requests
}

// batchLoad loads values, as *V, by key.
type batchLoad func(ctx context.Context, of []gather.Member) (map[string]any, error)

// one loads one value.
func (load batchLoad) one(ctx context.Context, m gather.Member) (any, error) {
	values, err := load(ctx, []gather.Member{m})
	if value, found := values[m.Key]; found || err != nil {
		return value, err
	}
	return nil, ErrNotFound
}

// open makes the call of the batch: for the keys or, if most is not 0, for as many as may join it.
func (b *batch) open(ctx context.Context, most int, take func(context.Context) (limit.Slot, error), keys ...string) *batch {
	b.loading, b.scriptSlots = newLoading(ctx, &b.guard.loaders, b.policy.kind), make(chan struct{}, maxScripts)
	loaders := &b.guard.loaders
	b.Call = gather.New(context.WithValue(context.WithoutCancel(ctx), loadingKey{}, b.loading), gather.Config{
		Most: most, Run: b.run, Go: b.guard.life.Go, // owner: the Guard; stop: its context ends when nobody waits; joined by Close
		Take: func(ctx context.Context) (free func(), ok bool) {
			s, err := take(ctx)
			return func() { loaders.limits.Free(s) }, err == nil
		},
		Limit: func(ctx context.Context, of []gather.Member) (context.Context, context.CancelFunc) {
			return loaders.withTimeout(ctx, of[0].Key)
		},
	}, keys...)
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

// obtain is the loader of the key's flight.
func (b *batch) obtain(ctx context.Context, m gather.Member) (any, error) {
	got, fate := b.Obtain(ctx, m)
	switch {
	case fate == gather.Skipped: // it got the lease later, and has a slot of its own
		return b.loadOne(ctx, m)
	case fate == gather.Late, b.one != nil && got.Keys > 1 && mayBeOfOneKey(got.Err):
		return b.loadApart(ctx, m)
	}
	if late, is := errors.AsType[*loadTimeout](got.Err); is {
		got.Err = &loadTimeout{m.Key, late.limit}
	}
	loadingOf(ctx).ttl.Store(b.loading.ttl.Load())
	loadingOf(ctx).addTags(b.loading.allTags())
	switch {
	case got.Err != nil:
		return nil, got.Err
	case !got.Found:
		return nil, ErrNotFound
	}
	return got.Value, nil
}

// mayBeOfOneKey reports whether the failure of a call may be due to one of its keys. A call that was cancelled, or took too long, would
// only be repeated by each.
func mayBeOfOneKey(err error) bool {
	return err != nil && !absentAlone(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// loadApart is loadOne in a slot of its own.
func (b *batch) loadApart(ctx context.Context, m gather.Member) (any, error) {
	loaders := &b.guard.loaders
	s, err := loaders.takePermit(ctx, limit.Need{Kind: b.policy.kind.loadSlots})
	if err != nil {
		return nil, err
	}
	defer loaders.limits.Free(s)
	return b.loadOne(ctx, m)
}

func (b *batch) loadOne(ctx context.Context, m gather.Member) (any, error) {
	ctx, cancel := b.guard.loaders.withTimeout(ctx, m.Key)
	defer cancel()
	if b.one != nil {
		return b.one(ctx, m)
	}
	return b.load.one(ctx, m)
}

// run is the call itself.
func (b *batch) run(ctx context.Context, of []gather.Member, finish func(map[string]any, error)) {
	first := of[0].Key
	var values map[string]any
	for _, m := range of {
		b.loading.keys = append(b.loading.keys, m.Key)
	}
	ctx = b.loading.begin(ctx)
	returned := make(chan struct{})
	defer close(returned)
	defer context.AfterFunc(ctx, func() { outlives(&b.guard.loaders, first, context.Cause(ctx), returned) })()
	b.guard.loaders.protect(ctx, first, func() (err error) {
		if b.one != nil && len(of) == 1 {
			value, err := b.one(ctx, of[0])
			values = map[string]any{first: value}
			return err
		}
		values, err = b.load(ctx, of)
		return err
	}, func(err error) {
		b.loading.end(err)
		finish(values, err)
	})
}

// gathering puts Gets of a Cache that miss at about the same time into batches.
type gathering struct {
	gather.Collector[*batch]

	guard  *Guard
	policy *policy
	most   int
	load   batchLoad
	one    func(context.Context, gather.Member) (any, error)
}

// join makes the load of a flight part of a batch. One that belongs to a loader or a transaction is on its own: it has a slot of its own, or
// sees rows that nobody else does. So is one that takes spare slots only.
func (j *load) join(ctx context.Context) {
	of := j.gathering
	if of == nil || j.spare || j.scope != (scope{}) {
		return
	}
	j.in(of.Join(j.key, func() *batch {
		b := &batch{guard: of.guard, policy: of.policy, load: of.load, one: of.one}
		return b.open(ctx, of.most, func(ctx context.Context) (limit.Slot, error) {
			return of.guard.loaders.takePermit(ctx, limit.Need{Kind: of.policy.kind.loadSlots})
		})
	}))
}
