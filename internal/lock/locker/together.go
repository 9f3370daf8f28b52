package locker

import (
	"context"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/link"
	"github.com/cacheguard/go/internal/redis/script"
)

// Together takes write locks in one step with what their holder has to do at once, and gives them up in one step with its last work: the
// updates of a Guard. Both are scripts, made of the call that takes a lock, or gives it up.
type Together interface {
	// TryLock takes all of the locks, or none. It waits for nobody: then it returns what matches the Locker's ErrNotAcquired.
	TryLock(ctx context.Context, names []string, b Beside) ([]Held, error)

	// Unlock gives the locks up with the calls that give makes. read returns the release's part of a reply.
	Unlock(held []Held, give func(i int, release script.Call) script.Call, read func(i int, reply *script.Reply) (int, error)) []Unlocked

	// Awaited reports whether somebody in this process waits for the lock.
	Awaited(name string) bool
}

// Beside makes the calls of the lock with that index.
type Beside struct {
	Take func(i int, ask script.Call) script.Call     // has the reply of ask
	Undo func(i int, release script.Call) script.Call // undoes it if the lock is not to be had, or nobody knows; its reply is not looked at
}

// Held is a lock that TryLock has taken.
type Held interface {
	// Within returns a context that ends with ctx and with the lease, and has the fence.
	Within(ctx context.Context) (_ context.Context, end func())
	Fence() int64
}

// Unlocked is how a lock was given up.
type Unlocked struct {
	Sent   bool  // the call was: the lock was not given up before
	Failed error // of the call: it may yet run
	Lock   error // as Unlock returns it
}

// TogetherOf returns the Together of a *rwlock.Locker. Package rwlock sets it before anything runs, so that its users need not see it.
var TogetherOf func(locks any) Together

// TryTogether is Try for many claims. take makes the calls. The claims that are not granted have been abandoned.
func TryTogether(ctx context.Context, b *Base, claims []*Claim, take func(i int, ask script.Call) script.Call, refused error) ([]queue.Grant, error) {
	calls, trails := make([]script.Call, len(claims)), make([]*link.Trail, len(claims))
	for i, c := range claims {
		patience := queue.PatienceOf(ctx, b.Redis.RoundTrip(c.Keys[0]))
		calls[i], trails[i] = take(i, c.Asking(c.Token, c.As, b.Config.TTL, 0, patience, "", 0)), &c.trail
	}
	replies, errs := b.Redis.AskTogether(ctx, calls, trails)
	grants, failed := make([]queue.Grant, len(claims)), error(nil)
	var granted []*Claim
	for i, c := range claims {
		var got queue.Asked
		err := errs[i]
		if err == nil {
			got, err = queue.ParseAsked(replies[i].Cmd)
		}
		held := err == nil && got.Status == "held"
		switch {
		case held:
			granted = append(granted, c)
			grants[i] = queue.Grant{Fence: got.Fence, Sent: replies[i].Sent, Length: b.Config.TTL}
		case err != nil:
			c.Abandon()
			if failed == nil || failed == refused { //nolint:errorlint // itself
				failed = err
			}
		default:
			if c.trail.Lost() {
				c.Abandon()
			}
			if failed == nil {
				failed = refused
			}
		}
	}
	if failed != nil {
		for _, c := range granted {
			c.Abandon()
		}
		return nil, failed
	}
	return grants, nil
}
