package rwlock

import (
	"context"

	"github.com/cacheguard/go/internal/run/observe"
)

func init() { observe.Register((*Locker).observed) }

// observed is for package admin.
func (k *Locker) observed() observe.Locker {
	if k == nil {
		return observe.Locker{}
	}
	return observe.Locker{
		Kind: "rwlock", Prefix: k.base.Config.Prefix, Instance: k.base.Config.Instance, Held: k.held, Up: k.base.Inbox.Up, Revoke: k.Revoke,
		Inspect: func(ctx context.Context, name string) (observe.Lock, error) {
			i, err := k.Inspect(ctx, name)
			l := observe.Lock{
				Token: i.Token, Instance: i.Instance, Holders: i.Readers, Fence: i.Fence, Left: i.Left,
				Waiting: i.WaitingWriters, WaitingReaders: i.WaitingReaders,
			}
			if i.Token != "" {
				l.Holders++
			}
			return l, err
		},
	}
}

func (k *Locker) held() (held []observe.Held) {
	for _, l := range k.life.Held() {
		mode := "read"
		if l.Writes() {
			mode = "write"
		}
		held = append(held, observe.Held{
			Name: l.claim.name, Token: l.claim.Token, Mode: mode, Fence: l.Fence(), Began: l.hold.Began(), Trusted: l.hold.TrustedUntil(),
		})
	}
	return held
}
