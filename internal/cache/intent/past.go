package intent

import "github.com/cacheguard/go/internal/cache/protocol"

// Past says which intents a call must read past the cache for, according to its context.
type Past struct {
	Named  *Intent   // the innermost that names the key; nil: none does
	tagged []*Intent // intents that name tags, which a value may have
}

// Add adds an intent of the Guard, if it names the key, or tags. Nil adds nothing.
func (p *Past) Add(of *Intents, in *Intent, key string) {
	if in == nil || in.of != of {
		return
	}
	named, tags := in.names(key)
	if named && p.Named == nil {
		p.Named = in
	}
	if tags {
		p.tagged = append(p.tagged, in)
	}
}

// Any reports whether there are such intents.
func (p *Past) Any() bool { return p.Named != nil || len(p.tagged) > 0 }

// Must reports whether the call has to go past the cache after all, once that has been read: what it found has a tag
// that is named, or Redis did not say what tags there are (not known).
func (p *Past) Must(known bool, stamp protocol.Stamp) bool {
	if p.Named != nil || p.Any() && !known {
		return true
	}
	for _, in := range p.tagged {
		if in.namesTag(stamp.Tags) {
			return true
		}
	}
	return false
}

// names reports whether the key is named, and whether tags are. An intent names nothing after Done: only then is the
// transaction over.
func (in *Intent) names(key string) (named, tags bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.called {
		return false, false
	}
	_, named = in.stands[&in.of.onKeys][key]
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
