package watch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/watch/observe"
)

const (
	mostKinds   = 1024 // that are remembered; of a Guard with more, nothing is unknown
	mostUnknown = 64   // that are counted by their names; the rest are otherKinds together
	longestKind = 128  // bytes of it that count

	otherKinds = "…"
)

// KindOf is what a tag or a key is called before its colon, or before its number: "category" of "category:shoes".
func KindOf(name string) string {
	if n := strings.IndexAny(name, ":/0123456789"); n > 0 {
		name = name[:n]
	}
	return name[:min(len(name), longestKind)]
}

// Known knows which kinds of names, of tags or of keys, the loads of a Guard have had, and counts names that are
// invalidated and that none of them had: nobody notices a typing error otherwise, as an invalidation of nothing
// succeeds. It judges once there was a load, and forgets what it has counted when a load, or a write that stores a
// value, has the kind after all. The zero Known is ready.
type Known struct {
	had atomic.Pointer[map[string]struct{}] // the map does not change; nil: there was no load. A nil map has all: they are too many

	mu      sync.Mutex
	unknown map[string]observe.Mistyped // by their kinds
}

// Written notes the names of a value that a write stored. That is no load: who only writes has none, and does not judge
// what others load.
func (k *Known) Written(names ...string) {
	if k.had.Load() != nil {
		k.Had(names...)
	}
}

// Had notes the names that a load had; it may have none.
func (k *Known) Had(names ...string) {
	had := k.had.Load()
	if had != nil && !slices.ContainsFunc(names, func(name string) bool { return !has(had, name) }) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make(map[string]struct{})
	if had = k.had.Load(); had != nil && *had == nil {
		return // since
	} else if had != nil {
		maps.Copy(all, *had)
	}
	for _, name := range names {
		kind := strings.Clone(KindOf(name))
		all[kind] = struct{}{}
		delete(k.unknown, kind)
	}
	if len(all) >= mostKinds {
		all = nil
		clear(k.unknown)
	}
	k.had.Store(&all)
}

func has(had *map[string]struct{}, name string) bool {
	_, is := (*had)[KindOf(name)]
	return is || *had == nil
}

// Invalidated counts those of the names that no load has had, except for some. What a feed invalidates in several
// Guards is counted if it is unknown to all of them.
func (k *Known) Invalidated(ctx context.Context, names []string, except func(name string) bool) {
	had := k.had.Load()
	if had == nil {
		return
	}
	for _, name := range names {
		if name != "" && !has(had, name) && (except == nil || !except(name)) {
			observe.Unknown(ctx, name, func() { k.count(strings.Clone(KindOf(name))) })
		}
	}
}

func (k *Known) count(kind string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if has(k.had.Load(), kind) {
		return // since
	}
	if k.unknown == nil {
		k.unknown = make(map[string]observe.Mistyped)
	}
	if _, counted := k.unknown[kind]; !counted && len(k.unknown) >= mostUnknown {
		kind = otherKinds
	}
	k.unknown[kind] = observe.Mistyped{Times: k.unknown[kind].Times + 1, Last: time.Now()}
}

// Kinds are what loads have had, in byte order; nil: they are not known.
func (k *Known) Kinds() []string {
	had := k.had.Load()
	if had == nil || *had == nil {
		return nil
	}
	return append([]string{}, slices.Sorted(maps.Keys(*had))...)
}

// Unknown says how often each kind was invalidated that no load has had, and when last.
func (k *Known) Unknown() map[string]observe.Mistyped {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.unknown)
}

// Count is how often names were invalidated that no load has had.
func (k *Known) Count() (n uint64) {
	for _, of := range k.Unknown() {
		n += of.Times
	}
	return n
}
