package cacheguard

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/tier"
)

// InvalidateAll is Invalidate for all keys under the Prefix, of all Guards. Its cost does not depend on how many there are.
//
// It takes a second: for that long, other Guards may trust the version of the Prefix that they know, so that hits need not ask. When it
// returns nil, none trusts the old one any more. This relies on the clocks of all machines advancing at the same rate, within a tenth.
func (g *Guard) InvalidateAll(ctx context.Context) error { return g.invalidateRealm(ctx, "") }

// invalidateRealm is InvalidateAll for a kind; empty: for all.
func (g *Guard) invalidateRealm(ctx context.Context, kind string) error {
	if g == nil {
		return errNilGuard
	}
	if !g.life.Begin() {
		return ErrClosed
	}
	defer g.life.Done()
	realm := g.versions.realm(kind)
	var names []string
	for part := range realm.parts {
		names = append(names, realmName(kind, part))
	}
	if err := g.versions.ofRealms.send(ctx, names); err != nil {
		return err
	}
	if g.versions.lease == 0 {
		return nil
	}
	timer := time.NewTimer(realmWait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-g.life.Ending.Done():
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("cacheguard: invalidate all: other instances may not know yet: %w", context.Cause(ctx))
	}
}

// realmName names the version of a part of a realm among invalidations.
func realmName(kind string, part int) string { return strconv.Itoa(part) + ":" + kind }

// ofRealm returns the part of a realm that has the name.
func (v *versions) ofRealm(name string) (p *realmPart, kind string) {
	for i := range name {
		if name[i] == ':' {
			part, _ := strconv.Atoi(name[:i])
			return &v.realm(name[i+1:]).parts[part], name[i+1:]
		}
	}
	return nil, ""
}

// forgetRealms drops what is known of the realms, and then their entries in the local tier.
func (v *versions) forgetRealms(names []string) {
	for _, name := range names {
		p, kind := v.ofRealm(name)
		p.drop()
		if kind == "" {
			v.guard.local.void()
		} else {
			v.guard.local.forgetMany([]string{kindName(kind)})
		}
	}
}

// noticeOfRealm returns the message to local tiers.
func noticeOfRealm(kind string) string {
	if kind == "" {
		return tier.All
	}
	return kindName(kind)
}
