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
	versions [][]byte        // as the stamps have them
	under    []tier.NameMark // for the local tier
	revoked  bool
}

// compare begins the comparison, and does not wait. An entry without stamps is valid, and costs nothing. Each is followed by one call
// of holds.
func (v *versions) compare(ctx context.Context, stamps protocol.Stamps) (c validity) {
	if len(stamps) == 0 {
		return c
	}
	var keys []string
	for len(stamps) > 0 {
		var name, version []byte
		name, version, stamps = stamps.Next()
		if name[0] != tagKind {
			continue // of a version of this program that is newer than this one
		}
		if v.invalidations.pending.has(string(name)) {
			return validity{revoked: true}
		}
		if v.guard.local != nil {
			c.under = append(c.under, v.guard.local.MarkName(name))
		}
		keys, c.versions = append(keys, v.key(string(name))), append(c.versions, version)
	}
	v.used.Store(true)
	c.asked = v.ask(ctx, keys...)
	return c
}

// holds reports whether the entry is valid. Redis' error is what Redis had to say.
func (c *validity) holds(ctx context.Context) (holds bool, redisErr, err error) {
	if c.revoked || len(c.reads) == 0 {
		return !c.revoked, nil, nil
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

// confirmed is what was read, as its stamps leave it: revoked, if one of them is not the current version; unreachable, if Redis did
// not say. Only then it is kept in the local tier.
func confirmed[V any](ctx context.Context, g *Guard, key string, mark tier.Mark, read *link.Read, r *readResult[V], c *validity,
	despite func(V) bool,
) (_ *readResult[V], redisErr, err error) {
	if len(r.entry.Stamps) == 0 {
		return r, read.Err, nil
	}
	switch holds, redisErr, err := c.holds(ctx); {
	case err != nil:
		return r, nil, err
	case redisErr != nil:
		return &readResult[V]{state: unreachable}, redisErr, nil
	case !holds && despite != nil && r.value != nil && despite(*r.value):
		return r, nil, nil
	case !holds:
		return &readResult[V]{state: revoked, entry: r.entry}, nil, nil
	}
	keep(g, key, mark, read, r, c.under)
	return r, nil, nil
}
