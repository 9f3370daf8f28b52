package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	whyoff "github.com/cacheguard/go/internal/cache/off"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/run/errs"
)

// scope says within what a call is made, according to its context.
type scope struct {
	nested bool          // a loader of the same Guard makes the call
	intent *write.Change // the innermost one with whose context it is made, of any Guard and also after its end; nil: none
	write  *write.Update // in whose write it is made, as above
}

func scopeOf(ctx context.Context, g *Guard) scope {
	s := scope{nested: loadingOf(ctx).within(g), write: write.Of(ctx)}
	if of, _ := ctx.Value(intentKey{}).(*intentScope); of != nil {
		s.intent = of.Change
	}
	return s
}

// isTransactions reports whether a transaction makes the call: its loader may see rows that nobody else does. What it
// loads is for this transaction alone: it shares no flight and no batch with others, and is not stored.
func (s scope) isTransactions() bool { return s.intent != nil || s.write != nil }

type intentKey struct{}

// intentScope is an intent within whose transaction a call is made.
type intentScope struct {
	*write.Change
	outer *intentScope
}

// pastOf says which intents a call for the key must read past the cache for.
func pastOf(ctx context.Context, g *Guard, key string) (p write.Past) {
	if !g.off.Has(whyoff.Intents) {
		return p
	}
	of, _ := ctx.Value(intentKey{}).(*intentScope)
	for ; of != nil; of = of.outer {
		p.Add(&g.writes, of.Change, key)
	}
	for u := write.Of(ctx); u != nil; u = u.Outer {
		p.Add(&g.writes, u.Named(), key)
	}
	return p
}

// loading is a load under way, found in the context of its loader.
type loading struct {
	loaders *loaders // nil: the write of a Put makes the value
	kind    *kind    // of the value
	keys    []string
	parent  *loading          // the load whose loader made this one necessary
	ttl     atomic.Int64      // set by SetTTL; unset: the Guard's
	again   atomic.Bool       // what it returns was read, and not made
	judged  atomic.Bool       // it is counted
	task    func(End)         // ends the task; nil: none has begun
	began   time.Time         // the same
	shown   func(failed bool) // tells package admin that it is over; set with the task

	callers  context.Context //nolint:containedctx // ends when all have left
	told     atomic.Bool     // callers were told that it takes too long
	until    <-chan struct{} // closed when the loader of its batch has returned; nil: it is on its own
	beside   *loading        // another one of the key; guarded by the mutex of loaders, as what follows
	returned chan struct{}   // closed when its loader has returned; nil: nobody waits for that

	mu   sync.Mutex
	tags []string // set by SetTags
}

// chosen is the TTL as set by SetTTL, or unset.
func (l *loading) chosen() time.Duration { return time.Duration(l.ttl.Load()) }

// addTags adds tags. If there are more than any message has room for, it keeps just enough to show that.
func (l *loading) addTags(tags []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tags = append(l.tags, tags...); len(l.tags) > 2*maxTags {
		l.tags = union(l.tags)
		l.tags = slices.Clip(l.tags[:min(len(l.tags), 2*maxTags+1)])
	}
}

// allTags returns the tags that addTags got.
func (l *loading) allTags() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tags)
}

// unset is a TTL that nobody chooses: too long for any clock.
const unset = time.Duration(^uint64(0) >> 1)

type loadingKey struct{}

func newLoading(ctx context.Context, l *loaders, k *kind, keys ...string) *loading {
	load := &loading{loaders: l, kind: k, keys: keys, parent: loadingOf(ctx)}
	load.ttl.Store(int64(unset))
	return load
}

// outsideLoads returns the context for work that is no part of the load that asked for it.
func outsideLoads(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadingKey{}, (*loading)(nil))
}

func loadingOf(ctx context.Context) *loading {
	l, _ := ctx.Value(loadingKey{}).(*loading)
	return l
}

// includes reports whether the key is being loaded by l, or by a load that l serves.
func (l *loading) includes(g *Guard, key string) bool {
	for ; l != nil; l = l.parent {
		if l.loaders == &g.loaders && slices.Contains(l.keys, key) {
			return true
		}
	}
	return false
}

// within reports whether a loader of the Guard is under way.
func (l *loading) within(g *Guard) bool {
	for ; l != nil; l = l.parent {
		if l.loaders == &g.loaders {
			return true
		}
	}
	return false
}

// SetTTL chooses the TTL of the entry being loaded, or written by a Put; Jitter and StaleFor apply as always. It is
// called with the context that the loader or write was given; with another one it does nothing. The last call counts.
// With 0 or less, the value is not stored. For ErrNotFound, the shorter of ttl and NegativeTTL counts.
func SetTTL(ctx context.Context, ttl time.Duration) {
	if l := loadingOf(ctx); l != nil {
		l.ttl.Store(int64(min(max(ttl, 0), longest)))
	}
}

// SetTags adds tags to the entry being loaded, or written by a Put, or to remembered absence, for InvalidateTags. It is
// called as SetTTL is.
//
// An entry can have 256 tags of 1 to 512 bytes each, and 50 KiB together. With more, or a tag that may have been
// invalidated since its load began, the value reaches those who wait for it, but is not stored.
func SetTags(ctx context.Context, tags ...string) {
	if l := loadingOf(ctx); l != nil {
		l.addTags(tags)
	}
}

// KeepTags says that the Load of a Source returns the value old, or the one that Source.Made is about: the entry keeps
// its tags, beside those of SetTags, and what was invalidated since it was made stays so. It is called as SetTTL is.
func KeepTags(ctx context.Context) {
	if l := loadingOf(ctx); l != nil {
		l.again.Store(true)
	}
}

const (
	maxTags = 256 // of an entry
	maxTag  = 512 // bytes

	maxAllTags = 50 << 10 // bytes
)

func checkTag(tag string) error {
	switch {
	case tag == "":
		return errors.New("cacheguard: tag is empty")
	case len(tag) > maxTag:
		return errs.TooLong("cacheguard: tag", tag, maxTag)
	}
	return nil
}

// checkTags refuses tags that no entry can have.
func checkTags(tags []string) error {
	if len(tags) > maxTags {
		return fmt.Errorf("cacheguard: it has more than %d tags", maxTags)
	}
	bytes := 0
	for _, tag := range tags {
		if err := checkTag(tag); err != nil {
			return err
		}
		bytes += len(tag)
	}
	if bytes > maxAllTags {
		return fmt.Errorf("cacheguard: its tags have %d bytes together, more than %d", bytes, maxAllTags)
	}
	return nil
}

// union is what is in the lists, each once, in byte order.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
