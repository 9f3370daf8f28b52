// Package pages marks the reads of a Guard that package middleware makes to answer a request. A request may need several of them, and is
// counted by itself, so metrics of the Guard leave them out.
package pages

import "context"

type mark struct{}

// Read is the context for the read of a key. The reads that a load of it makes in turn, with a context made from this one, are not
// marked: they have other keys. Being the context itself, it costs a hit no allocation.
type Read struct {
	context.Context //nolint:containedctx // it is one
	Key             string
	Finish          bool // a load goes on when nobody waits for it any more
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
