package mutex

import (
	"context"

	"github.com/cacheguard/go/internal/run/observe"
)

func init() {
	observe.Register((*Locker).observed)
	observe.Register((*Quorum).observed)
}

// observed is for package admin.
func (k *Locker) observed() observe.Locker {
	if k == nil {
		return observe.Locker{}
	}
	return observe.Locker{
		Kind: "mutex", Prefix: k.base.Config.Prefix, Instance: k.base.Config.Instance, Up: k.base.Inbox.Up,
		Held: func() []observe.Held { return shown(k.life.Held()) },
		Inspect: func(ctx context.Context, name string) (observe.Lock, error) {
			i, err := k.Inspect(ctx, name)
			return observe.Lock{
				Token: i.Token, Instance: i.Instance, Holders: i.Holds, Fence: i.Fence, Left: i.Left, Waiting: i.Waiters,
			}, err
		},
		Revoke: func(ctx context.Context, name string) (holders int, err error) {
			held, err := k.Revoke(ctx, name)
			if held {
				holders = 1
			}
			return holders, err
		},
	}
}

func shown(leases []*Lease) (held []observe.Held) {
	for _, l := range leases {
		held = append(held, observe.Held{
			Name: l.name, Token: l.claim.token, Mode: "exclusive", Fence: l.fence, Began: l.hold.Began(), Trusted: l.hold.TrustedUntil(),
		})
	}
	return held
}
