package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Intent is a dead man's switch around a transaction, see Guard.Intend. It is safe for concurrent use.
type Intent struct{ kept *write.Change }

var (
	errNilIntent = errors.New("cacheguard: intent is nil (did Intend return an error?)")
	errNoUpdate  = errors.New("cacheguard: also: the context is not that of a write")
)

// Intend announces that a transaction, which begins and commits elsewhere, changes what is named. It is called before
// the commit, and Done after it, with a round trip each.
//
// Done invalidates everything named; if this process dies, the end of the intent does, within twice LeaseTTL, but for
// limits in docs/guarantees.md. Nobody waits for an intent: reads are answered and loaded as usual, but nothing cached
// or loaded before lasts longer. Several Changes end in their order: see docs/transactions.md.
//
// An empty key or tag, or a tag of more than 512 bytes, is an error, and so is a *RedisError whose Op is intend: Redis
// does not know of the intent, so do not write. After UpdateTimeout what is named is invalidated, Also returns an
// error, and Done returns one that matches rwlock.ErrLeaseLost. After Close, intents expire.
func (g *Guard) Intend(ctx context.Context, first Changes, then ...Changes) (*Intent, error) {
	if g == nil {
		return nil, notCalled(errNilGuard)
	}
	places, err := placesOf(first, then)
	if err != nil {
		return nil, notCalled(err)
	}
	if ctx.Err() != nil {
		return nil, notCalled(fmt.Errorf("cacheguard: intend: %w", lifecycle.Ended(ctx)))
	}
	in := g.writes.Begin()
	if err := in.Announce(ctx, places...); err != nil {
		in.Stop() // what stands expires
		return nil, notCalled(err)
	}
	return &Intent{in}, nil
}

// Also adds what the transaction turned out to change, before the commit. An error says that Redis does not know of it,
// and that the transaction must not commit; Done invalidates it all the same. After Done it is an error.
func (in *Intent) Also(ctx context.Context, first Changes, then ...Changes) error {
	if in == nil {
		return errNilIntent
	}
	places, err := placesOf(first, then)
	if err != nil {
		return err
	}
	return in.kept.Announce(ctx, places...)
}

// Done invalidates what was named, and ends the intent, after the commit or the rollback, even if ctx has ended. Called
// again, it returns what the first call did. The error joins a *RedisError, whose Op is invalidate, for each key and
// tag that is pending; after Close it is ErrClosed.
func (in *Intent) Done(ctx context.Context) error {
	if in == nil {
		return errNilIntent
	}
	return saying(in.kept.Done(ctx), true, true)
}

// Context returns a context for reads within the transaction, that ends with ctx. What is loaded with it, also after
// Done, is stored nowhere, and shared with nobody outside. Until Done, a Get of what is named reads past the cache.
func (in *Intent) Context(ctx context.Context) context.Context {
	if in == nil {
		return ctx
	}
	outer, _ := ctx.Value(intentKey{}).(*intentScope)
	return context.WithValue(ctx, intentKey{}, &intentScope{in.kept, outer})
}

// Also names, within the write of an Update, UpdateMany or Put, with its context and before it commits, what else it
// changes: tags, and keys that only its statements told. An error says that Redis could not be told, and that write
// must not commit. What is named is invalidated after the write's own keys, in the order of the Changes, or, if the
// process dies, within twice LeaseTTL.
func Also(ctx context.Context, first Changes, then ...Changes) error {
	u := write.Of(ctx)
	if u == nil {
		return errNoUpdate
	}
	places, err := placesOf(first, then)
	if err != nil {
		return err
	}
	return u.Also(ctx, places...)
}

// Changes names keys of a Guard, and tags, that a write changes. To name those of several Caches, append them.
type Changes struct {
	Keys []string
	Tags []string
}

// Changes names the keys of the things. One that has no key (see Key) becomes an empty key, which every call refuses.
func (c *Cache[K, V]) Changes(ids ...K) Changes {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = c.Key(id)
	}
	return Changes{Keys: keys}
}

// placesOf are what ends one after the other. It refuses what cannot be named.
func placesOf(first Changes, then []Changes) (places []write.Names, err error) {
	for _, c := range append([]Changes{first}, then...) {
		err = errs.Join(err, c.check())
		places = append(places, write.Names(c))
	}
	return places, err
}

// check refuses what cannot be named.
func (c Changes) check() error {
	for _, key := range c.Keys {
		if key == "" {
			return errEmptyKey
		}
	}
	var refused []error
	for _, tag := range c.Tags {
		refused = append(refused, checkTag(tag))
	}
	return errs.Join(refused...)
}
