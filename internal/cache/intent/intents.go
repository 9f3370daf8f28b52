// Package intent keeps the intents of transactions in Redis until they are done: on keys, and on the epochs of tags.
package intent

import (
	"crypto/rand"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/inprocess"
	"github.com/cacheguard/go/internal/cache/invalidate"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Config is what Intents need of their Guard.
type Config struct {
	Instance string
	Timeout  time.Duration // UpdateTimeout; -1: none
	Anyway   bool          // UpdateAnyway: an intent stands for its caller even if Redis does not know of it
	Logger   *slog.Logger
	Closed   error // of what is done after the end of the Guard

	Keys      *protocol.Keyspace
	Epochs    *epoch.Epochs
	OfKeys    *invalidate.Sender
	OfEpochs  *invalidate.OfEpochs
	Keeper    *lease.Keeper
	Life      *lifecycle.Life
	InProcess *inprocess.Process        // of a disabled Guard; else nil
	Named     func(keys, tags []string) // notes what is to be invalidated
	AreAny    func(bool)                // notes whether there may be names that reads within a transaction go past the cache for
}

// Intents has the intents of a Guard that have not ended. Use Open.
type Intents struct {
	Config

	onKeys, onTags standing

	mu     sync.Mutex
	closed bool
	all    map[*Intent]struct{}
	late   bool // one was over before its Done, so its transaction may go on: AreAny remains true
}

// standing is how intents stand on keys, or on the epochs of tags: what is invalidated, and the calls.
type standing struct {
	*invalidate.Sender
	intend func(id, intent, notice string) *script.Call
	renew  func(id, intent string) script.Call
	done   func(id, intent, notice string) *script.Call
}

// Open makes the Intents those of a Guard.
func (i *Intents) Open(cfg Config) {
	i.Config, i.all = cfg, make(map[*Intent]struct{})
	keys, epochs := cfg.Keys, cfg.Epochs
	i.onKeys = standing{
		Sender: cfg.OfKeys,
		intend: func(key, intent, notice string) *script.Call {
			return keys.Intend(keys.ValueKey(key), intent, notice)
		},
		renew: func(key, intent string) script.Call { return keys.RenewIntend(keys.ValueKey(key), intent) },
		done: func(key, intent, notice string) *script.Call {
			return keys.Done(keys.ValueKey(key), intent, notice)
		},
	}
	i.onTags = standing{
		Sender: &cfg.OfEpochs.Sender,
		intend: func(id, intent, notice string) *script.Call {
			part, name := invalidate.PartAndName(id)
			return epochs.Intend(name, part, intent, keys.IntentTTL(), notice)
		},
		renew: func(id, intent string) script.Call {
			part, name := invalidate.PartAndName(id)
			return epochs.RenewIntend(name, part, intent, keys.IntentTTL())
		},
		done: func(id, intent, notice string) *script.Call {
			part, name := invalidate.PartAndName(id)
			return epochs.Done(name, part, intent, notice)
		},
	}
}

// Begin begins an intent that names nothing yet, and that Timeout bounds; nil: after Close.
func (i *Intents) Begin() *Intent {
	now := time.Now()
	in := &Intent{
		of: i, since: now, text: rand.Text() + " " + strconv.FormatInt(now.UnixMilli(), 10) + " " + i.Instance,
		stands: make(map[*standing]map[string]*stand), tags: make(map[string]struct{}), done: make(chan struct{}),
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.all[in] = struct{}{}
	i.AreAny(true)
	if i.Timeout >= 0 {
		in.timer = time.AfterFunc(i.Timeout, in.expire) // owner: the Guard; stop: the end of the intent; it does not wait for anything
	}
	return in
}

func (i *Intents) remove(in *Intent) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.all, in)
	i.AreAny(i.late || len(i.all) > 0)
}

// Count is how many there are, and since when the oldest is.
func (i *Intents) Count() (n int, oldest time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for in := range i.all {
		if oldest.IsZero() || in.since.Before(oldest) {
			oldest = in.since
		}
	}
	return len(i.all), oldest
}

// Close leaves the intents to expire.
func (i *Intents) Close() {
	i.mu.Lock()
	i.closed = true
	left := make([]*Intent, 0, len(i.all))
	for in := range i.all {
		left = append(left, in)
	}
	i.mu.Unlock()
	for _, in := range left {
		in.Stop()
	}
}
