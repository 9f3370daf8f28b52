package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/tier"
)

// validity is the comparison of an entry's stamps with the current versions. It is begun after the entry was read.
type validity struct {
	asked
	versions [][]byte        // of tags, as the stamps have them
	under    []tier.NameMark // for the local tier
	revoked  bool
	redisErr error // the versions of realms are not known
}

// compare begins the comparison, and does not wait. The realms are settled. It is followed by one call of holds.
func (v *versions) compare(ctx context.Context, stamps protocol.Stamps, w *realms) (c validity) {
	if len(stamps) > 0 && w.redisErr != nil {
		return validity{redisErr: w.redisErr}
	}
	var keys []string
	for name, version := range stamps.All() {
		switch name[0] {
		case rootStamp, kindStamp:
			p, known := w.of(name)
			c.revoked = c.revoked || v.isPending(p)
			if name[0] == kindStamp {
				c.mark(v.guard.local, name)
			}
			if string(version) != known { // perhaps there is a newer one by now
				p.outdated(known)
				keys, c.versions = append(keys, p.key), append(c.versions, version)
			}
		case tagStamp:
			v.used.Store(true)
			c.revoked = c.revoked || v.invalidations.pending.has(string(name))
			c.mark(v.guard.local, name)
			keys, c.versions = append(keys, v.key(string(name))), append(c.versions, version)
		}
	}
	if len(keys) > 0 && !c.revoked {
		c.asked = v.ask(ctx, keys...)
	}
	return c
}

// mark notes the state of a name in the local tier.
func (c *validity) mark(l *local, name []byte) {
	if l != nil {
		c.under = append(c.under, l.MarkName(name))
	}
}

// isPending reports whether an invalidation of the realm is.
func (v *versions) isPending(p *realmPart) bool {
	if p == nil || v.ofRealms.pending.count.Load() == 0 {
		return false
	}
	return v.ofRealms.pending.any(func(name string) bool { of, _ := v.ofRealm(name); return of == p })
}

// holds reports whether the entry is valid. redisErr is an error of Redis.
func (c *validity) holds(ctx context.Context) (holds bool, redisErr, err error) {
	if c.redisErr != nil || c.revoked || len(c.reads) == 0 {
		return !c.revoked, c.redisErr, nil
	}
	if redisErr, err = c.wait(ctx); err != nil {
		return false, nil, err
	}
	for i, read := range c.reads {
		if read.Err == nil && string(read.Raw) != string(c.versions[i]) {
			return false, nil, nil // whatever the others are
		}
	}
	return redisErr == nil, redisErr, nil
}

// check compares the stamps of an entry with the current versions, and waits for that. redisErr is an error of Redis.
func (v *versions) check(ctx context.Context, valueKey, kind string, stamps protocol.Stamps) (holds bool, redisErr, err error) {
	w := v.realms(ctx, valueKey, kind)
	if err := w.wait(ctx); err != nil {
		return false, nil, err
	}
	compared := v.compare(ctx, stamps, &w)
	return compared.holds(ctx)
}

// confirmed returns what was read, after the comparison of its stamps: revoked, if one of them is not the current version;
// unreachable, if Redis did not answer. Only then does the local tier keep it.
func confirmed[V any](ctx context.Context, g *Guard, key string, mark tier.Mark, read *link.Read, r *readResult[V], c *validity,
	spec loadSpec[V],
) (_ *readResult[V], redisErr, err error) {
	switch r.state {
	case missing, unusable, alienEntry, unreachable:
		return r, read.Err, nil
	}
	switch holds, redisErr, err := c.holds(ctx); {
	case err != nil:
		return r, nil, err
	case redisErr != nil:
		return &readResult[V]{state: unreachable}, redisErr, nil
	case !holds && spec.despiteTags != nil && r.value != nil && spec.despiteTags(*r.value):
		return r, nil, nil
	case !holds:
		return &readResult[V]{state: revoked, entry: r.entry}, nil, nil
	}
	if g.local != nil && r.kept.CompareAndSwap(false, true) {
		keep(g, key, spec.policyOf(g), mark, read, r, c.under)
	}
	return r, nil, nil
}
