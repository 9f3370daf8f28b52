// Package pages marks the reads of a Guard that package middleware makes to answer a request. A request may need several of them, and is
// counted by itself, so metrics of the Guard leave them out.
package pages

import (
	"context"
	"sync/atomic"

	"github.com/cacheguard/go/internal/cache/protocol"
)

type mark struct{}

// Read is the context for the read of a key. The reads that a load of it makes in turn, with a context made from this one, are not
// marked: they have other keys. Being the context itself, it costs a hit no allocation.
type Read struct {
	context.Context //nolint:containedctx // it is one
	Key             string
	Finish          bool            // a load goes on when nobody waits for it any more
	Made            *protocol.Stamp // what the value was made under: set by a read that finds one, for a later load that stores it again; nil: nobody asks

	past atomic.Pointer[error] // a load may look while the read goes on
}

// Past is why the read goes past the cache; nil: it does not, as far as is known.
func (r *Read) Past() error {
	if why := r.past.Load(); why != nil {
		return *why
	}
	return nil
}

// IsPast notes for a page's read of the key why it goes past the cache.
func IsPast(ctx context.Context, key string, why error) {
	if page := read(ctx, key); page != nil {
		page.past.Store(&why)
	}
}

// Loading is the key of the load that a context belongs to.
type Loading struct{}

// Again says that the load of the context stores a value that it was given, or that was read as Made says, and did not make. So the entry has all
// names that the value stood under, with the epochs of then: what was invalidated since the value was made stays so.
func Again(ctx context.Context) {
	if load, is := ctx.Value(Loading{}).(interface{ Again() }); is {
		load.Again()
	}
}

// Value is asked by IsRead.
func (r *Read) Value(key any) any {
	if key == (mark{}) {
		return r
	}
	return r.Context.Value(key)
}

// IsRead reports whether a read of the key with this context is one for a page.
func IsRead(ctx context.Context, key string) bool { return read(ctx, key) != nil }

// Finishes reports whether a load that the read causes goes on when nobody waits for it any more.
func Finishes(ctx context.Context, key string) bool {
	page := read(ctx, key)
	return page != nil && page.Finish
}

func read(ctx context.Context, key string) *Read {
	if page, is := ctx.Value(mark{}).(*Read); is && page.Key == key {
		return page
	}
	return nil
}
