package mutex

import (
	"context"
	"crypto/rand"

	"github.com/cacheguard/go/internal/link"
)

type ownerKey struct{}

// WithOwner returns a context that makes locks re-entrant: who locks with it, or with a context made from it, may lock
// again what it holds already, and the lock is free when it was unlocked as often. All such leases have the same token and
// fence, and a lease that joins does not prolong those that are there. An owner stands for one line of work; two
// goroutines that use it at the same time both get the lock.
//
// Without an owner, a second Lock waits for the first lease to end, as with sync.Mutex.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, rand.Text())
}

// newcomer is who asks for a lock.
func newcomer(ctx context.Context, key string) who {
	w := who{keys: keysOf(key), id: rand.Text(), trail: new(link.Trail)}
	w.token = w.id
	if owner, ok := ctx.Value(ownerKey{}).(string); ok {
		w.token = owner
	}
	return w
}

// owned reports whether the token is that of an owner.
func (w who) owned() bool { return w.token != w.id }
