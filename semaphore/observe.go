package semaphore

import (
	"context"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/run/observe"
)

func init() { observe.Register((*Locker).observed) }

// observed is for package admin.
func (k *Locker) observed() observe.Locker {
	if k == nil {
		return observe.Locker{}
	}
	return observe.Locker{
		Kind: "semaphore", Prefix: k.base.Config.Prefix, Instance: k.base.Config.Instance, Permits: k.permits,
		Held: k.held, Up: k.base.Inbox.Up, Revoke: k.Revoke,
		Inspect: func(ctx context.Context, name string) (observe.Lock, error) {
			i, err := k.Inspect(ctx, name)
			l := observe.Lock{Holders: len(i.Holders), Waiting: i.Waiters}
			for _, h := range i.Holders {
				l.By = append(l.By, observe.Holder{Token: h.Token, Instance: keys.InstanceOf(h.Token), Left: h.Left})
			}
			return l, err
		},
	}
}

func (k *Locker) held() (held []observe.Held) {
	for _, l := range k.life.Held() {
		held = append(held, observe.Held{
			Name: l.claim.name, Token: l.claim.Token, Mode: "permit", Began: l.hold.Began(), Trusted: l.hold.TrustedUntil(),
		})
	}
	return held
}
