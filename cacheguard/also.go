package cacheguard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

var errNoUpdate = errors.New("cacheguard: also: the context is not that of a write")

// Also names, within the write of an Update, UpdateMany or Put, what else it changes: tags, and keys that only its statements reveal. It is called with
// the context that write was given, before write commits. An error says that Redis does not know of the names, and that write must not commit.
//
// It invalidates them when write has returned or, if the process dies, within twice LeaseTTL. As with Intend, nobody waits for it: only the
// keys of the Update are locked. A value that a Put stores is invalidated too, if it has a tag that is named.
//
// It takes one round trip, and one more after write.
func Also(ctx context.Context, c Changes) error {
	u := updateOf(ctx)
	if u == nil {
		return errNoUpdate
	}
	if err := c.check(); err != nil {
		return err
	}
	in, err := u.also.begin(u.guard)
	if err != nil {
		return err
	}
	c.Keys = slices.DeleteFunc(slices.Clone(c.Keys), func(key string) bool { return slices.Contains(u.keys, key) })
	return in.Also(ctx, c)
}

// alsoIntent is the intent on what a write names, if it does.
type alsoIntent struct {
	atomic.Pointer[Intent]

	mu   sync.Mutex
	over bool // write has returned
}

func (a *alsoIntent) begin(g *Guard) (*Intent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, errIntentDone
	}
	if in := a.Load(); in != nil {
		return in, nil
	}
	in, err := g.newIntent()
	a.Store(in)
	return in, err
}

// end ends it, even if ctx has ended.
func (a *alsoIntent) end(ctx context.Context) error {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	if in := a.Load(); in != nil {
		return in.Done(context.WithoutCancel(ctx))
	}
	return nil
}

// Changes names what a write changes: keys of a Guard, and tags. To name those of several Caches, append them.
type Changes struct {
	Keys []string
	Tags []string
}

// Changes names the keys of the things, for a write that changes them. A thing that has no key (see Key) becomes an empty key, which every call
// refuses.
func (c *Cache[K, V]) Changes(ids ...K) Changes {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = c.Key(id)
	}
	return Changes{Keys: keys}
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
	return errors.Join(refused...)
}
