package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/protocol"
)

type intentKey struct{}

// intentScope is an intent within whose transaction a call is made.
type intentScope struct {
	*Intent
	outer *intentScope
}

// Context returns a context for reads within the transaction: a Get of a key that is named, or of a value that has a tag that is named, reads
// past the cache, shares its load with no other transaction, and stores nothing. Without it, a loader that reads in the transaction could
// store what is never committed. It ends with ctx.
func (in *Intent) Context(ctx context.Context) context.Context {
	if in == nil {
		return ctx
	}
	outer, _ := ctx.Value(intentKey{}).(*intentScope)
	return context.WithValue(ctx, intentKey{}, &intentScope{in, outer})
}

// past says which intents a call must read past the cache for, according to its context.
type past struct {
	named  *Intent   // the innermost that names the key; nil: none does
	tagged []*Intent // those that name tags, which a value may have
}

// pastOf returns the past of a call for the key.
func pastOf(ctx context.Context, g *Guard, key string) (p past) {
	if !g.detours.has(intending) {
		return p
	}
	of, _ := ctx.Value(intentKey{}).(*intentScope)
	for ; of != nil; of = of.outer {
		p.add(g, of.Intent, key)
	}
	for u := updateOf(ctx); u != nil; u = u.outer {
		p.add(g, u.also.Load(), key)
	}
	return p
}

func (p *past) add(g *Guard, in *Intent, key string) {
	if in == nil || in.guard != g {
		return
	}
	named, tags := in.names(key)
	if named && p.named == nil {
		p.named = in
	}
	if tags {
		p.tagged = append(p.tagged, in)
	}
}

// any reports whether there are such intents.
func (p *past) any() bool { return p.named != nil || len(p.tagged) > 0 }

// intent tells the flights of a transaction from others; nil: none need be told apart.
func (p *past) intent() *Intent {
	if p.named == nil && len(p.tagged) > 0 {
		return p.tagged[0]
	}
	return p.named
}

// must reports whether the call has to go past the cache after all, once that has been read: there is a value that has a tag that is named,
// or none, and nobody knows which tags the one to be loaded will have.
func (p *past) must(a action, stamp protocol.Stamp) bool {
	if p.named != nil {
		return true
	}
	for _, in := range p.tagged {
		if in.namesTag(stamp.Tags) {
			return true
		}
	}
	return len(p.tagged) > 0 && a != doServe && a != doRefresh && a != doBypass
}

// names reports whether the key is named, and whether tags are. After its end, an intent names nothing.
func (in *Intent) names(key string) (named, tags bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.called {
		return false, false
	}
	_, named = in.stands[in.guard.intents.onKeys.what][key]
	return named, len(in.tags) > 0
}

// namesTag reports whether one of the tags is named.
func (in *Intent) namesTag(tags protocol.Tags) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for tag := range tags.All() {
		if _, named := in.tags[string(tag)]; named {
			return true
		}
	}
	return false
}
