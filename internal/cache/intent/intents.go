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
	calls
}

// calls are what an intent asks of Redis: onKeys and onTags.
type calls interface {
	intend(id, intent, notice string) *script.Call
	renew(id, intent string) script.Call
	done(id, intent, notice string) *script.Call
}

// onKeys are the calls for keys.
type onKeys struct{ keys *protocol.Keyspace }

func (o onKeys) intend(key, intent, notice string) *script.Call {
	return o.keys.Intend(o.keys.ValueKey(key), intent, notice)
}

func (o onKeys) renew(key, intent string) script.Call {
	return o.keys.RenewIntend(o.keys.ValueKey(key), intent)
}

func (o onKeys) done(key, intent, notice string) *script.Call {
	return o.keys.Done(o.keys.ValueKey(key), intent, notice)
}

// onTags are the calls for epochs, whose ids are a part and a name.
type onTags struct {
	epochs *epoch.Epochs
	keys   *protocol.Keyspace // for how long an intent stands
}

func (o onTags) intend(id, intent, notice string) *script.Call {
	part, name := invalidate.PartAndName(id)
	return o.epochs.Intend(name, part, intent, o.keys.IntentTTL(), notice)
}

func (o onTags) renew(id, intent string) script.Call {
	part, name := invalidate.PartAndName(id)
	return o.epochs.RenewIntend(name, part, intent, o.keys.IntentTTL())
}

func (o onTags) done(id, intent, notice string) *script.Call {
	part, name := invalidate.PartAndName(id)
	return o.epochs.Done(name, part, intent, notice)
}

// Open makes the Intents those of a Guard.
func (i *Intents) Open(cfg Config) {
	i.Config, i.all = cfg, make(map[*Intent]struct{})
	i.onKeys = standing{cfg.OfKeys, onKeys{cfg.Keys}}
	i.onTags = standing{&cfg.OfEpochs.Sender, onTags{cfg.Epochs, cfg.Keys}}
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
