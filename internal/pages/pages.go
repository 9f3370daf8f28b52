// Package pages marks the reads of a Guard by which package middleware answers a request. A request may need several of them, and is
// counted by itself, so metrics of the Guard leave them out.
package pages

import "context"

type mark struct{}

// Reading returns the context for the read of a key. What a load of it reads in turn, with a context made from this one, is not marked: its
// key is another.
func Reading(ctx context.Context, key *string) context.Context {
	return context.WithValue(ctx, mark{}, key)
}

// IsRead reports whether a read of the key with this context is one for a page.
func IsRead(ctx context.Context, key string) bool {
	page, is := ctx.Value(mark{}).(*string)
	return is && *page == key
}
