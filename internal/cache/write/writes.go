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
package write

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/inprocess"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
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
	Journal   *report.Journal
	Notices   *tier.Notices
	Locks     *rw.Locker         // of updates
	WriteLock Lock               // the user's, instead of those; else nil
	InProcess *inprocess.Process // of a disabled Guard; else nil
	Owner     Owner
}

// Owner is the Guard.
type Owner interface {
	Local() *tier.Local                             // nil: it has none
	Failed(op, key string, err error) error         // reports that Redis failed, and returns the error for that
	Untold(op, key string, err error) error         // does not report it
	IsFailed(err error) bool                        // reports whether Failed returned it
	Named(ctx context.Context, keys, tags []string) // notes what is to be invalidated
	// Replacing returns what is to be put in the place of some of the keys, which are about to be invalidated.
	Replacing(ctx context.Context, keys []string) map[string]Replacement
	Levels() *Levels       // by which what a call names ends in stages
	Ended(names []string)  // hears whose epochs were ended
	ArePending(keys bool)  // notes whether invalidations of keys are pending
	AreIntended(some bool) // notes whether transactions may have to read past the cache
}

// Lock is cacheguard.WriteLock.
type Lock interface {
	DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error
}

// Writes are the writes of a Guard. Use Open; until then, nothing is pending.
type Writes struct {
	Config
	pending

	mu      sync.Mutex
	stand   map[*Change]struct{} // the shared changes that have not ended
	updates map[*Change]*Update  // whose write runs, and that keep others from storing
	late    bool                 // one was over before its Done, so its transaction may go on: AreIntended remains true
}

// Open makes the Writes those of a Guard.
func (w *Writes) Open(cfg Config) {
	w.Config, w.stand, w.parts = cfg, make(map[*Change]struct{}), make(map[int]map[target]replay)
	w.updates, w.after = make(map[*Change]*Update), make(map[target]struct{})
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

// Intents is how many changes stand, and since when the oldest does. An update counts as one with what its write has named.
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
