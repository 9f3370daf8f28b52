package mutex

import (
	"context"
	"time"
)

// Info is what Redis knows of a lock.
type Info struct {
	Token    string        // of the holder; empty: the lock is free
	Instance string        // of the holder: its Config.Instance; empty: not known
	Fence    int64         // of the last acquisition; 0: none is remembered
	Left     time.Duration // until the holder's lease ends, unless it is renewed
	Holds    int           // how often its owner has it; 1 without an owner
	Waiters  int           // in the queue: processes, callers that have an owner, and the first few Fair callers of each process
}

// Inspect reports who holds the lock of the name and how many wait for it. For a lock that nobody ever took, it returns the
// zero Info.
func (k *Locker) Inspect(ctx context.Context, name string) (Info, error) {
	var info Info
	err := k.regard("inspect", name, func(key string) error {
		reply, err := k.base.Redis.Ask(ctx, inspecting(key), nil)
		if err == nil {
			info, err = parseInfo(reply.Cmd)
		}
		return err
	})
	return info, err
}

// Revoke takes the lock of the name away from its holder, and reports whether there was one. The holder's context ends with
// ErrRevoked: as soon as the message reaches it, or else with its next renewal; with FixedLease, when its lease ends. The next
// holder does not wait for that.
func (k *Locker) Revoke(ctx context.Context, name string) (bool, error) {
	held := false
	err := k.regard("revoke", name, func(key string) error {
		reply, err := k.base.Redis.Ask(ctx, revoking(key, k.base.Config.Prefix), nil)
		if err == nil {
			held, err = reply.Bool()
		}
		return err
	})
	return held, err
}

func (k *Locker) regard(op, name string, f func(key string) error) error {
	if err := k.begin(name); err != nil {
		return err
	}
	defer k.life.Done()
	return lockErrors.Failed(op, name, f(lockKey(k.base.Config.Prefix, name)))
}
