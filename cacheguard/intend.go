package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/run/errs"
)

// Intent is a dead man's switch around a transaction, see Guard.Intend. It is safe for concurrent use.
type Intent struct{ kept *write.Change }

var (
	errNilIntent = errors.New("cacheguard: intent is nil (did Intend return an error?)")
	errNoUpdate  = errors.New("cacheguard: also: the context is not that of a write")
)

// Intend announces that a transaction, which begins and commits elsewhere, changes what is named. It is called before
// the commit, and Done after it:
//
//	in, err := guard.Intend(ctx, cacheguard.Changes{Keys: []string{products.Key(42)}, Tags: []string{"category:shoes"}})
//	if err != nil {
//		return err // nothing was written
//	}
//	defer in.Done(ctx) // after commit or rollback
//	...                // statements
//	err = in.Also(ctx, cacheguard.Changes{Keys: changed}) // what the statements named, before the commit
//	...                // commit
//	err = in.Done(ctx)
//
// Values that are made of other cached ones come after those: Intend(ctx, products, views). Done ends what then names,
// one Changes after the other, each when Redis has acknowledged the one before, so that no load in between makes a view
// of an old product, and stores it. Their intents stand a LeaseTTL longer in each place: if this process dies, that of
// the products expires first. What is named in several places ends in each, as a tag may have to that products and
// views have.
//
// Done invalidates everything named. If this process dies, that happens when the intent expires: within twice LeaseTTL.
// Nobody waits for an intent: until then, reads are answered and loaded as usual. But nothing that is cached, or was
// loaded before, lasts longer than the intent. If the process is paused for longer than that, then commits, and dies
// before its next renewal announces the intent again, an older value can stay until its TTL. After Done returned nil,
// no Get returns an older value. Intents exclude nobody, and any number may stand on a key: the database orders its
// writers. Where readers must not see the older value while the transaction commits, use Update.
//
// Empty Changes are fine. An empty key or tag, or a tag that is too long, is an error, and so is a *RedisError whose Op
// is intend: Redis does not know of the intent, so do not write (with Config.UpdateAnyway, Intend returns no such
// error, and Done invalidates). It takes one round trip.
//
// An intent ends after UpdateTimeout: then what is named is invalidated, the Logger gets a warning, Also returns an
// error, and Done invalidates once more, and returns an error that matches rwlock.ErrLeaseLost. Close ends the renewals
// of all intents, which then expire.
func (g *Guard) Intend(ctx context.Context, first Changes, then ...Changes) (*Intent, error) {
	if g == nil {
		return nil, notCalled(errNilGuard)
	}
	places, err := placesOf(first, then)
	if err != nil {
		return nil, notCalled(err)
	}
	if ctx.Err() != nil {
		return nil, notCalled(fmt.Errorf("cacheguard: intend: %w", context.Cause(ctx)))
	}
	in := g.writes.Begin()
	if err := in.Announce(ctx, places...); err != nil {
		in.Stop() // what stands expires
		return nil, notCalled(err)
	}
	return &Intent{in}, nil
}

// Also adds what the transaction turned out to change. It is called before the commit: an error says that Redis does
// not know of the names, and that the transaction must not commit. Done invalidates them all the same. After Done it is
// an error. It takes one round trip, and none for names that Redis knows of: a call with names of one that failed, or
// is under way, asks Redis itself. Several Changes are in the places of those of Intend.
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

// Done invalidates what was named, and ends the intent. It is called after the commit, or the rollback, and may be
// called again: then it does nothing, and returns what the first call did. As with Invalidate, it does so, and waits
// for the answer, even if ctx has ended, as a request's ctx has when its client has left. The error joins a
// *RedisError, whose Op is invalidate, for each key and tag that is pending; the intent then expires as if the process
// had died. After Close, it returns ErrClosed, and the intent expires. No error says that the transaction is not
// committed. It takes one round trip for each Changes of Intend.
func (in *Intent) Done(ctx context.Context) error {
	if in == nil {
		return errNilIntent
	}
	return saying(in.kept.Done(ctx), true)
}

// Context returns a context for reads within the transaction. What a Get loads with it, or with the context of a loader
// below it, is this transaction's alone, whatever the key, also after UpdateTimeout and after Done: the load is shared
// with nobody outside, and stores nothing, because a loader that reads in the transaction sees rows that may never be
// committed. Until Done, a Get of a key that is named, or of a value that has a tag that is named, also reads past what
// is cached. Without this context, a loader that reads in the transaction could store what is never committed. It ends
// with ctx.
func (in *Intent) Context(ctx context.Context) context.Context {
	if in == nil {
		return ctx
	}
	outer, _ := ctx.Value(intentKey{}).(*intentScope)
	return context.WithValue(ctx, intentKey{}, &intentScope{in.kept, outer})
}

// Also names, within the write of an Update, UpdateMany or Put, what else it changes: tags, and keys that only its
// statements told. It is called with the context that write was given, before write commits. An error says that Redis
// could not be told, and that write must not commit.
//
// What is named is invalidated when write has returned and its keys are or, if the process dies, within twice LeaseTTL.
// Several Changes are invalidated in their order, as those of Intend. As with Intend, nobody waits for it: only the
// keys of the Update are locked. A value that a Put stores is invalidated too, if it has a tag that is named.
//
// It takes one round trip, and one more for each Changes after write.
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

// Changes names what a write changes: keys of a Guard, and tags. To name those of several Caches, append them.
type Changes struct {
	Keys []string
	Tags []string
}

// Changes names the keys of the things, for a write that changes them. A thing that has no key (see Key) becomes an
// empty key, which every call refuses.
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
