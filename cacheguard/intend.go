package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/rwlock"
)

// Intent is a dead man's switch around a transaction, see Guard.Intend. It is safe for concurrent use.
type Intent struct {
	guard *Guard
	text  string // what Redis has of it: a random text, since when it stands by the clock of this process in ms, the instance
	since time.Time

	mu     sync.Mutex
	stands map[string]map[string]*stand // by what they stand on, and then by key or id
	tags   map[string]struct{}
	timer  *time.Timer   // fires when UpdateTimeout is over
	over   bool          // nothing is renewed any more
	called bool          // Done was
	done   chan struct{} // closed when Done has an answer
	err    error         // which is this
}

var (
	errIntentDone = errors.New("cacheguard: intent is done")
	errNilIntent  = errors.New("cacheguard: intent is nil (did Intend return an error?)")
)

// Intend announces that a transaction, which begins and commits elsewhere, changes what is named. It is called before the commit, and Done
// after it:
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
// Done invalidates everything named. If this process dies, that happens when the intent expires: within twice LeaseTTL. Nobody waits for an
// intent: until then, reads are answered and loaded as usual. But nothing that is cached, or was loaded before, lasts longer than the
// intent. After Done returned nil, no Get returns an older value. Intents exclude nobody, and any number may stand on a key: the database
// orders its writers. Where readers must not see the older value while the transaction commits, use Update.
//
// Empty Changes are fine. An empty key or tag, or a tag that is too long, is an error, and so is a *RedisError whose Op is intend: Redis does
// not know of the intent, so do not write (with Config.UpdateAnyway, Intend returns no such error, and Done invalidates). It takes one round trip.
//
// An intent ends after UpdateTimeout: then what is named is invalidated, the Logger gets a warning, Also returns an error, and Done
// invalidates once more, and returns an error that matches rwlock.ErrLeaseLost. Close ends the renewals of all intents, which then expire.
func (g *Guard) Intend(ctx context.Context, c Changes) (*Intent, error) {
	if g == nil {
		return nil, notCalled(errNilGuard)
	}
	if err := c.check(); err != nil {
		return nil, notCalled(err)
	}
	if ctx.Err() != nil {
		return nil, notCalled(fmt.Errorf("cacheguard: intend: %w", context.Cause(ctx)))
	}
	if !g.life.Begin() {
		return nil, notCalled(ErrClosed)
	}
	defer g.life.Done()
	in, err := g.newIntent()
	if err != nil {
		return nil, notCalled(err)
	}
	if err := in.announce(ctx, c); err != nil {
		in.stop() // what stands expires
		return nil, notCalled(err)
	}
	return in, nil
}

// newIntent begins an intent that names nothing yet.
func (g *Guard) newIntent() (*Intent, error) {
	now := time.Now()
	in := &Intent{
		guard: g, since: now, text: rand.Text() + " " + strconv.FormatInt(now.UnixMilli(), 10) + " " + g.cfg.Instance,
		stands: make(map[string]map[string]*stand), tags: make(map[string]struct{}), done: make(chan struct{}),
	}
	if !g.intents.add(in) {
		return nil, ErrClosed
	}
	return in, nil
}

// Also adds what the transaction turned out to change. It is called before the commit: an error says that Redis does not know of the names,
// and that the transaction must not commit. Done invalidates them all the same. After Done it is an error. It takes one round trip.
func (in *Intent) Also(ctx context.Context, c Changes) error {
	if in == nil {
		return errNilIntent
	}
	if err := c.check(); err != nil {
		return err
	}
	if !in.guard.life.Begin() {
		return ErrClosed
	}
	defer in.guard.life.Done()
	return in.announce(ctx, c)
}

// announce lets the intent stand on what is named.
func (in *Intent) announce(ctx context.Context, c Changes) error {
	g := in.guard
	added, err := in.add(c)
	if err != nil || len(added) == 0 || g.cfg.Disabled {
		return err
	}
	placed := make(chan error, 1)
	g.life.Go(func() { // owner: the Guard; stop: RedisTimeout for each batch; joined by Close
		err := in.place(ctx, added, g.cfg.UpdateAnyway)
		if g.cfg.UpdateAnyway {
			err = nil // it was reported, and is tried again until Done
		}
		placed <- errors.Join(err, in.ended())
	})
	select {
	case err := <-placed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cacheguard: intend: %w", context.Cause(ctx))
	}
}

// add notes what is named, so that Done invalidates it, and returns what is new.
func (in *Intent) add(c Changes) (added []*stand, err error) {
	g := in.guard
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.endedLocked(); err != nil {
		return nil, err
	}
	added = in.addLocked(added, &g.intents.onKeys, c.Keys)
	tags := make([]string, len(c.Tags))
	for i, tag := range c.Tags {
		in.tags[tag], tags[i] = struct{}{}, epoch.OfTag(tag)
	}
	return in.addLocked(added, &g.intents.onTags, g.ofEpochs.inAllParts(tags)), nil
}

func (in *Intent) addLocked(added []*stand, on *standing, ids []string) []*stand {
	if in.stands[on.what] == nil {
		in.stands[on.what] = make(map[string]*stand)
	}
	for _, id := range ids {
		if in.stands[on.what][id] == nil {
			s := &stand{intent: in, on: on, id: id}
			in.stands[on.what][id] = s
			added = append(added, s)
		}
	}
	return added
}

// ended is why the intent can take nothing more; nil: it can.
func (in *Intent) ended() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.endedLocked()
}

func (in *Intent) endedLocked() error {
	switch {
	case in.called:
		return errIntentDone
	case in.over:
		return in.overdue()
	}
	return nil
}

func (in *Intent) overdue() error {
	return fmt.Errorf("cacheguard: intent stood for longer than UpdateTimeout (%v): %w", in.guard.cfg.UpdateTimeout, rwlock.ErrLeaseLost)
}
