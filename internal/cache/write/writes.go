// Package write has the writes of a Guard. Each is a change: it names keys and tags, may be announced in Redis, is
// renewed while it stands, and ends, with or without a value, which removes what it names and leaves no load that began
// before a way to store.
//
//   - Invalidate is an end without an announcement.
//   - Intend is announced and shared: any number stand on a key, and while one does, nothing that is cached lasts
//     longer than it.
//   - Update is announced and exclusive, under the locks of its keys: nobody stores while it stands. A Put ends with a
//     value.
//
// What is named becomes targets, a key or the epoch of a name in a part of the keyspace, whose sort says which scripts
// they take (target.go). Requests go to each part by itself (send.go), and an end that fails is pending until it has
// reached Redis (pending.go).
//
// # Order
//
// A value that a load made of an old one before that ended must end after it. So a writer that knows names places,
// sources first (order.go):
//
//  1. Announce lets the change stand in all places at once, before the commit: place n for n times LeaseTTL longer than the first. All are renewed as often.
//  2. The transaction commits.
//  3. Done ends what the first place names, and begins with the next when Redis has answered. An Update's own keys come before what its
//     write has named.
//  4. What Redis has not acknowledged is pending. It is sent again, part by part, the oldest calls first; the places after it end all the same, and once
//     more when it is no longer pending.
//
// Where the writer stops, or is not heard:
//
//   - It dies in step 1: nothing was written, and what stands expires. Later, in any step: a place that has not ended expires, and each later than
//     those before, as renewals are less than a LeaseTTL apart. A value made until then ends with its own intent, and one made later is
//     made of what the expired ones left: the new. What was pending is in the places that expire.
//   - It is paused: as if it had died. When it goes on, it announces again what it finds expired, and ends it as usual.
//   - Its context is cancelled in step 1: an error, and nothing may be written. Later steps go on without it.
//   - A reply is lost in step 1: an error. In step 3 or 4: pending, so all of it may be done twice, which costs loads and does no harm.
//   - Renewals of one node alone are lost for a LeaseTTL, and then the writer dies: the order is lost. A limit, as an intent that Redis evicts.
package write

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/watch"
)

// Config is what Writes need of their Guard.
type Config struct {
	Timeout  time.Duration // UpdateTimeout; -1: none
	Anyway   bool          // UpdateAnyway: a change stands for its caller even if Redis does not know of it
	Replicas int           // have to acknowledge what is written
	Logger   *slog.Logger
	Closed   error // of what is done after the end of the Guard

	Keys      *protocol.Keyspace
	Epochs    *epoch.Epochs
	Link      *send.Link
	Breakers  *breaker.Set
	Keeper    *lease.Keeper
	Life      *lifecycle.Life
	Journal   *watch.Journal
	Notices   *tier.Notices
	Locks     *rw.Locker // of updates
	WriteLock Lock       // the user's, instead of those; else nil
	Owner     Owner
}

// Owner is the Guard.
type Owner interface {
	Local() *tier.Local                             // nil: it has none
	Failed(op, key string, err error) error         // reports that Redis failed, and returns the error for that
	Untold(op, key string, err error) error         // does not report it
	IsFailed(err error) bool                        // reports whether Failed returned it
	Named(ctx context.Context, keys, tags []string) // notes what is to be invalidated
	ArePending(keys bool)                           // notes whether invalidations of keys are pending
	AreIntended(some bool)                          // notes whether transactions may have to read past the cache
}

// Lock is cacheguard.WriteLock.
type Lock interface {
	DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error
}

// Writes are the writes of a Guard. Use Open; until then, nothing is pending.
type Writes struct {
	Config
	pending

	Overdue atomic.Uint64 // changes that outlasted Timeout, ever

	mu      sync.Mutex
	stand   map[*Change]struct{} // the shared changes that have not ended
	updates map[*Change]*Update  // whose write runs, which keep others from storing, until Timeout is over
	late    bool                 // one was over before its Done, so its transaction may go on: AreIntended remains true
}

// Open makes the Writes those of a Guard.
func (w *Writes) Open(cfg Config) {
	w.Config, w.stand, w.parts = cfg, make(map[*Change]struct{}), make(map[int]map[target]replay)
	w.updates = make(map[*Change]*Update)
}

// Invalidate removes keys, and ends the epochs of names.
func (w *Writes) Invalidate(ctx context.Context, keys, names []string) error {
	return w.tell(ctx, new(Change), sort.invalidate, w.targets(keys, names))
}

// InvalidateOnce is Invalidate without its promise: what fails is not pending. It returns why Redis failed.
func (w *Writes) InvalidateOnce(ctx context.Context, keys, names []string) error {
	all := requests(w.targets(keys, names), "")
	w.ask(ctx, "invalidate", all, sort.invalidate)
	for _, r := range all {
		if r.err != nil {
			return errors.Unwrap(r.err)
		}
	}
	return nil
}

// Notice is the next message that local tiers are to forget the key.
func (w *Writes) Notice(key string) string { return keys{w}.notice(w.key(keys{w}, key)) }

// Intents is how many changes stand, and since when the oldest does. An update counts as one with what its write has
// named.
func (w *Writes) Intents() (n int, oldest time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.oldestLocked(); c != nil {
		oldest = c.since
	}
	n = len(w.stand)
	for _, u := range w.updates {
		if also := u.Named(); also == nil || !has(w.stand, also) {
			n++
		}
	}
	return n, oldest
}

// Oldest says what the oldest of them is; empty: none stands.
func (w *Writes) Oldest() string {
	w.mu.Lock()
	c := w.oldestLocked()
	w.mu.Unlock() // which a change's may not be taken under: Also takes it the other way round
	if c == nil {
		return ""
	}
	what := "intent on"
	if !c.shared {
		what = "update of"
	}
	if w.Timeout > 0 && time.Since(c.since) >= w.Timeout {
		return fmt.Sprint(what, " ", errs.Names(shown(c.named())), " that has outlasted UpdateTimeout: others may write")
	}
	return fmt.Sprint(what, " ", errs.Names(shown(c.named())))
}

func (w *Writes) oldestLocked() (oldest *Change) {
	older := func(c *Change) {
		if oldest == nil || c.since.Before(oldest.since) {
			oldest = c
		}
	}
	for c := range w.stand {
		older(c)
	}
	for c := range w.updates {
		older(c)
	}
	return oldest
}

func has(all map[*Change]struct{}, c *Change) bool {
	_, is := all[c]
	return is
}

// Close leaves the shared changes to expire.
func (w *Writes) Close() {
	w.mu.Lock()
	left := slices.Collect(maps.Keys(w.stand))
	w.mu.Unlock()
	for _, c := range left {
		c.Stop()
	}
}
