package cacheguard

import (
	"context"
	"strconv"
	"strings"

	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/script"
)

// InvalidateAll is Invalidate for all keys under the Prefix, of all Guards. It takes a round trip, however many there are. The Key of the
// *RedisError is empty.
func (g *Guard) InvalidateAll(ctx context.Context) error {
	return g.invalidateNames(ctx, []string{epoch.All})
}

// invalidateNames ends the epochs of the names, in each part of the keyspace.
func (g *Guard) invalidateNames(ctx context.Context, names []string) error {
	if g == nil {
		return errNilGuard
	}
	if !g.life.Begin() {
		return ErrClosed
	}
	defer g.life.Done()
	return g.ofEpochs.send(ctx, g.ofEpochs.inAllParts(names))
}

// epochInvalidations are the invalidations of names. A name has an epoch in each part of the keyspace, and each part is sent, and may fail,
// for itself.
type epochInvalidations struct{ invalidations }

func newEpochInvalidations(g *Guard) *epochInvalidations {
	i := new(epochInvalidations)
	i.invalidations = invalidations{
		guard: g,
		part:  func(id string) int { part, _ := partAndName(id); return part },
		call: func(id, notice string) *script.Call {
			part, name := partAndName(id)
			return g.epochs.Revoke(name, part, notice)
		},
		message: func(id string) string { return g.notices.NextOfMany(partAndName(id)) },
		forgetLocal: func(ids []string) {
			for _, id := range ids {
				part, name := partAndName(id)
				g.epochs.Forget(name, part)
				g.local.ForgetMany(name)
			}
		},
		shown: func(id string) string { _, name := partAndName(id); return epoch.Shown(name) },
	}
	return i
}

func (i *epochInvalidations) inAllParts(names []string) (ids []string) {
	for part := range i.guard.epochs.Parts() {
		for _, name := range names {
			ids = append(ids, idOf(part, name))
		}
	}
	return ids
}

func idOf(part int, name string) string { return strconv.Itoa(part) + ":" + name }

func partAndName(id string) (part int, name string) {
	digits, name, _ := strings.Cut(id, ":")
	part, _ = strconv.Atoi(digits) // idOf made it
	return part, name
}

// Moment, Quiet and Had are for package epoch.
func (i *epochInvalidations) Moment() uint64 { return i.pending.moment.Load() }

func (i *epochInvalidations) Quiet(since uint64) bool {
	return i.pending.count.Load() == 0 && i.pending.moment.Load() == since
}

func (i *epochInvalidations) Had(name string, part int, since uint64) bool {
	return i.pending.had(idOf(part, name), since)
}
