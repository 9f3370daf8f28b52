package cacheguard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/redis/wake"
)

// Why a key is removed, though it is to be replaced.
var (
	errTooMany       = errors.New("the call has more keys than are loaded at once")
	errTooManyWait   = errors.New("too many keys wait to be loaded")
	errOfTransaction = errors.New("it was invalidated within a transaction, a write or a loader, whose reads are its own")
	errIsSlow        = errors.New("Redis is slow")
	errNotKept       = errors.New("what was loaded is not to be stored, by its TTL")
	errOvertaken     = errors.New("another write, or another load, came in between")
	errOfOthers      = errors.New("the call replaces values of another Cache, of which this one may be made, or the other way round")
)

// longestSlotWait is how long a write waits for a slot in which to load what replaces a value.
const longestSlotWait = 50 * time.Millisecond

// mostReplaced is how many keys one call replaces at most.
const mostReplaced = 64

// recent is a key that was asked for, with the Cache that loads it.
type recent interface {
	loadAnew(key string) *load
	cache() any                                // the *Cache
	warm(ctx context.Context, others []recent) // loads what of these is missing, all of that Cache
}

type recentOf[K comparable, V any] struct {
	of *Cache[K, V]
	k  K
}

// loadAnew is the load that replaces what the cache has for the key.
func (r *recentOf[K, V]) loadAnew(key string) *load {
	spec := r.of.specOf(r.k)
	spec.spare = true
	return spec.loadOf(r.of.guard, key, scope{}, nil)
}

func (r *recentOf[K, V]) cache() any { return r.of }

func (r *recentOf[K, V]) warm(ctx context.Context, all []recent) {
	ks := make([]K, len(all))
	for i, other := range all {
		ks[i] = other.(*recentOf[K, V]).k //nolint:forcetypeassert // it has the same Cache
	}
	w := new(warming)
	if r.of.warm(ctx, ks, w, new(WarmConfig)) == nil { // else the Guard is closed
		key := ""
		if first, is := errors.AsType[*KeyError](w.first); is {
			key = first.Key
		}
		for range w.Failed {
			r.of.guard.unreplaced(ctx, key, w.first)
		}
	}
}

// isAsked notes that the key is asked for, if it is to be replaced.
func (c *Cache[K, V]) isAsked(key string, k K) {
	if c.cfg.Replace <= 0 || key == "" {
		return
	}
	if lately := c.policy.kind.lately.Load(); lately != nil && !lately.Touch(key) {
		lately.Add(key, c.cfg.Replace, &recentOf[K, V]{c, k})
		c.guard.inbox.Start() // to hear what others invalidate
	}
}

// replacing returns how to load the keys that can be replaced, and counts others that are to be.
func (g *Guard) replacing(ctx context.Context, keys []string) map[string]write.Replacement {
	if g.listener.Load() == nil {
		return nil
	}
	by := make(map[string]write.Replacement)
	var cache any
	keys = slices.Sorted(slices.Values(keys)) // so that a call that names keys of several Caches replaces those of the same one each time
	for _, key := range keys {
		if by[key] != nil {
			continue
		}
		of, why := g.replaceable(ctx, key, len(by))
		if of != nil && cache != nil && of.cache() != cache {
			of, why = nil, errOfOthers
		}
		if why != nil {
			g.unreplaced(ctx, key, why)
		} else if of != nil {
			cache = of.cache()
			by[key] = &replacing{rebuild: g.newRebuild(of.loadAnew(key), nil, nil)}
		}
	}
	return by
}

// mostReplaced is how many keys of a call are replaced: no more than could be loaded at once. Others are removed without more ado, as with thousands
// the announcements alone would take longer than it takes to load what is still asked for.
func (g *Guard) mostReplaced() int {
	most := mostReplaced
	for _, limit := range [...]int{g.cfg.MaxLoads, g.cfg.FleetLoads} {
		if limit > 0 {
			most = min(most, limit)
		}
	}
	return most
}

// apart is a context that ends with the call's, or with the Guard, and has none of its values: one may be a transaction of the caller's, through which
// the loader would read what may never be committed.
func (g *Guard) apart(call context.Context) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(context.Background())
	atCall := context.AfterFunc(call, func() { end(context.Cause(call)) })
	atClose := context.AfterFunc(g.life.Ending, func() { end(ErrClosed) })
	return ctx, func() {
		atCall()
		atClose()
		end(nil)
	}
}

// replaceable is what loads the key, if it was asked for lately; or why it cannot, with that many others.
func (g *Guard) replaceable(ctx context.Context, key string, others int) (of recent, why error) {
	of, asked := g.kinds.of(key).lately.Load().Asked(key)
	switch {
	case !asked:
		return nil, nil
	case scopeOf(ctx, g) != (scope{}):
		return nil, errOfTransaction
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case others >= g.mostReplaced():
		return nil, errTooMany
	case g.isSlow(key):
		return nil, errIsSlow
	}
	if off := g.mustBypass(ctx, key); off != nil {
		return nil, off
	}
	return of, nil
}

// unreplaced counts a key that is to be replaced, and is removed. What is so by design is no trouble: one line for a Cache and a reason will do. What
// follows from a trouble with Redis that has its line has none of its own: then the key may still be there, and its invalidation pending.
func (g *Guard) unreplaced(ctx context.Context, key string, why error) {
	what := report.Unreplaced
	_, ofRedis := errors.AsType[*RedisError](why)
	if (ofRedis || errors.Is(why, errIsSlow) || errors.Is(why, write.ErrNotAnnounced)) && g.journal.Lasts() {
		what = report.Kept
	}
	for _, design := range [...]error{errTooMany, errOfTransaction, errNotKept, errOvertaken, errOfOthers, errBypassed} {
		if errors.Is(why, design) {
			what = report.RemovedAgain
			if _, told := g.kinds.of(key).removed.LoadOrStore(design, true); !told {
				what = report.Removed
			}
		}
	}
	g.tell(context.WithoutCancel(ctx), what, key, why)
}

// replacing loads what is put in the place of an old value, through the lease, while that is served.
type replacing struct {
	*rebuild

	first  string // the generation of the load that it found first; empty: none
	shares string // the generation of the load that it shares
}

func (r *rebuild) Key() string { return r.load.valueKey }

// Load begins after the change stands. So it may load itself, or share a load that got its lease after it looked first.
func (r *replacing) Load(ctx context.Context, withdraw func()) (f protocol.Filling, shared bool) {
	g := r.guard
	ctx, cancel := g.apart(ctx)
	defer cancel()
	defer func() { r.why = cmp.Or(r.why, context.Cause(ctx)) }()
	g.inbox.Start()
	waiter := g.inbox.Watch(protocol.LeaseKey(r.load.valueKey))
	defer waiter.Stop()
	r.token = protocol.NewReplacing()
	if g.cfg.WaitTimeout > 0 {
		r.patience = time.Now().Add(g.cfg.WaitTimeout)
	}
	slotless := time.Now() // since when
	for polls := 0; ctx.Err() == nil && !r.impatient(); polls++ {
		got, err := r.look(ctx)
		switch {
		case err != nil:
			r.recall(err)
			r.why = err
			return f, false
		case got.Status == protocol.Granted && r.shares == "":
			return r.lead(ctx, got), false
		case got.Status == protocol.Free && time.Since(slotless) < longestSlotWait:
			r.stay(ctx, shortestStay)
			continue
		case got.Status == protocol.Free:
			r.why = errNoSpareSlot
			return f, false
		case got.Status == protocol.Granted:
			g.life.Go(r.giveUp) // the load that it shares has ended without a word; stop: RedisTimeout; joined by Close
			return f, false
		case got.Status != protocol.Held:
			return f, false
		}
		share := r.mayShare(got)
		if f.Generation = r.first; share {
			r.shares = got.Generation
			withdraw()
		}
		if ended, stored := r.awaitEnd(ctx, waiter, got, polls); ended {
			return f, stored
		}
		slotless = time.Now()
	}
	return f, false
}

// look asks for the lease, if there is a slot, and else whether somebody has it.
func (r *replacing) look(ctx context.Context) (protocol.Acquired, error) {
	r.slot = r.guard.loaders.limits.Try(ctx, r.guard.loaders.need(r.load))
	request := r.request()
	request.Anew, request.Inbox, r.epochs = true, r.guard.inbox.Address(), nil
	got, err := r.acquire(ctx, request)
	if err != nil || got.Status != protocol.Granted || r.shares != "" {
		r.returnSlot()
	}
	return got, err
}

// mayShare reports whether the load that has the lease is a replacement as well, began after this one looked first, and will report its end.
func (r *replacing) mayShare(got protocol.Acquired) bool {
	r.first = cmp.Or(r.first, got.Generation)
	return r.shares == "" && got.Generation != r.first && got.Registered && got.Replaces()
}

// awaitEnd waits until it is time to look again or, if it shares the load, for the message that says how that has ended: only this proves that its
// value was stored.
func (r *replacing) awaitEnd(ctx context.Context, waiter *wake.Waiter, got protocol.Acquired, polls int) (ended, stored bool) {
	if r.shares != "" && got.Generation != r.shares {
		return true, false // it ended without a word
	}
	waiter.Waiting()
	timer := time.NewTimer(r.trusts(got, polls))
	defer timer.Stop()
	select {
	case msg := <-waiter.C:
		what, _, about := protocol.ParsePush(msg.Body, got.Generation)
		return about && r.shares != "" && !msg.AskAgain, what == protocol.PushedValue || what == protocol.PushedStored
	case <-timer.C:
		return false, false
	case <-r.breaker.Opened():
	case <-ctx.Done():
	}
	return true, false
}

// lead loads under the lease, which is renewed meanwhile.
func (r *replacing) lead(ctx context.Context, got protocol.Acquired) protocol.Filling {
	defer r.keep()()
	f := r.loadFor(ctx, got.Generation)
	f.Generation = got.Generation
	return f
}

// loadFor loads in the slot, and returns what is to be stored if the generation is still there.
func (r *rebuild) loadFor(ctx context.Context, generation string) (f protocol.Filling) {
	r.under.Ready(ctx)
	r.load.encode = r.encode
	out := r.guard.loaders.run(ctx, r.load, r.slot)
	if out.err != nil && !out.absent {
		r.report(ctx, out.answer(Loaded, 0))
		r.why = out.err
		return f
	}
	stamp, refused := r.stamp(ctx, &out)
	if errors.Is(refused, epoch.ErrUnproven) {
		return f
	}
	if f = r.prepare(ctx, out, generation, stamp, refused); f.TTL <= 0 {
		r.why = cmp.Or(refused, out.refused, errNotKept)
	}
	return f
}

// Report counts what came of it.
func (r *rebuild) Report(ctx context.Context, status string, err error) {
	if err == nil && status == protocol.Stored {
		r.guard.replaced.Add(1)
		return
	}
	why := cmp.Or(r.why, errOvertaken)
	if status != protocol.Refused {
		why = errors.New(status)
	}
	r.guard.unreplaced(ctx, r.load.key, cmp.Or(err, why))
}

// reloading is the value that is loaded at the end of an update, for the key that is to be replaced. Nobody serves the old one any more.
type reloading struct {
	*rebuild
	due bool // the old value is gone, and nothing was loaded yet
}

// anew is the value of an update that has none: what is loaded at its end, if its one key is to be replaced. Over is called after the update, and
// counts a key that was not.
func (g *Guard) anew(ctx context.Context, keys []string, v write.Value) (_ write.Value, over func(called bool, err error)) {
	if v != nil || len(keys) > 1 {
		return v, func(bool, error) {}
	}
	of, why := g.replaceable(ctx, keys[0], 0)
	if of == nil {
		return nil, func(called bool, _ error) {
			if called && why != nil {
				g.unreplaced(ctx, keys[0], why)
			}
		}
	}
	r := &reloading{rebuild: g.newRebuild(of.loadAnew(keys[0]), nil, nil)}
	return r, func(_ bool, err error) {
		if r.due {
			r.Report(ctx, protocol.Refused, err)
		}
	}
}

func (*reloading) Ask(context.Context)     {}
func (r *reloading) Asked(context.Context) { r.due = true }

// Filling loads, as long as the update's announcement stands for sure.
func (r *reloading) Filling(ctx context.Context, generation string) (f protocol.Filling) {
	r.due = false
	ctx, leave := r.guard.apart(ctx)
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, r.guard.cfg.LeaseTTL)
	defer cancel()
	limits := r.guard.loaders.limits
	for patience := time.Now().Add(longestSlotWait); r.slot.IsNone() && ctx.Err() == nil && time.Now().Before(patience); {
		if r.slot = limits.Try(ctx, r.guard.loaders.need(r.load)); r.slot.IsNone() {
			r.stay(ctx, shortestStay)
		}
	}
	if r.why = cmp.Or(context.Cause(ctx), errNoSpareSlot); !r.slot.IsNone() {
		r.why, r.epochs = nil, nil
		r.prepareLoad(ctx)
		f = r.loadFor(ctx, generation)
	}
	if f.TTL <= 0 {
		r.Report(ctx, protocol.Refused, nil)
	}
	return f
}
