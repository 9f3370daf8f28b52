package tier

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/clock"
)

// stripes is how many sets the keys are divided into, whose epochs tell what was forgotten while a read was under way.
const stripes = 1 << 10

// Limits bound a tier. Exactly one of MaxBytes and MaxEntries is set.
type Limits struct {
	MaxBytes   int
	MaxEntries int
	TTL        time.Duration
	HotKeys    int // keep only that many keys, those most asked for; 0: any
	MaxLag     time.Duration
	Echo       func(key string) *wake.Echo // which must be younger than MaxLag; nil: none has to
	Clock      clock.Clock
}

// Tier keeps values. It is safe for concurrent use.
type Tier struct {
	Limits

	cache      store
	hot        *hot // nil: every key is kept
	feed       feed
	live       func() bool // whether notices arrive
	seed       maphash.Seed
	epoch      [stripes]atomic.Uint64
	names      [stripes]atomic.Uint64 // epochs of the names that items were made under
	generation atomic.Uint64          // grows whenever all is void
	evictions  atomic.Uint64          // for want of room
}

// Item is a value that is kept. It does not change, but for its end.
type Item struct {
	last  time.Duration // by Clock.Mono: served at all
	ends  time.Duration // by Clock.Mono: its TTL
	bytes int

	// The fields that a Get looks at are together, and the value may follow: each line of memory that is not in the
	// processor's cache counts.
	generation uint64
	until      time.Duration // by Clock.Mono: served as fresh
	echo       *wake.Echo    // of its part of the keyspace; nil: none is needed
	gone       atomic.Bool   // it is in the tier no more
	under      []NameMark
	Value      any    // nil: remembered absence
	Named      bool   // it is of a named cache; set before Keep
	Early      *Early // how its entry is replaced before its end; nil: not at all; set before Keep
}

// Early is what replaces an entry before its end.
type Early struct {
	Took time.Duration // the load
	Head []byte        // tells the entry from those that take its place
}

// NameMark is the state of a name before it was looked at.
type NameMark struct {
	epoch *atomic.Uint64
	was   uint64
}

// MarkName is called before anybody asks whether what was made under the name is still valid, for Keep.
func (t *Tier) MarkName(name string) NameMark {
	epoch := &t.names[maphash.String(t.seed, name)%stripes]
	return NameMark{epoch, epoch.Load()}
}

// ForgetMany drops all that was made under the name, and, now and then, what was made under another one. Under All,
// everything was.
func (t *Tier) ForgetMany(name string) {
	if name == All {
		t.Void()
		return
	}
	t.names[maphash.String(t.seed, name)%stripes].Add(1)
}

// Left is for how long the item's TTL is not over; negative: since when it is.
func (t *Tier) Left(i *Item) time.Duration { return i.ends - t.Clock.Mono() }

// New returns an empty tier. Live says whether notices arrive; it is called for every Get.
func New(l Limits, live func() bool) (*Tier, error) {
	t := &Tier{Limits: l, live: live, seed: maphash.MakeSeed()}
	var err error
	t.cache, err = newStore(l, func() { t.evictions.Add(1) })
	if err != nil {
		return nil, err
	}
	t.feed.lost = t.Void
	t.feed.restart()
	if l.HotKeys > 0 {
		t.hot = newHot(l.HotKeys, l.Clock)
	}
	return t, nil
}

// Get returns what is kept for the key, and may be served as fresh; nil if there is nothing.
func (t *Tier) Get(key string) *Item {
	if t.hot != nil {
		t.hot.note(key)
	}
	i, found := t.cache.GetIfPresent(key)
	if !found || !t.serves(i) {
		return nil
	}
	return i
}

// standing reports whether none of the names that the item was made under was forgotten.
func (i *Item) standing() bool {
	for _, name := range i.under {
		if name.epoch.Load() != name.was {
			return false
		}
	}
	return true
}

// Has reports whether Get would find the key. It does not count as a Get.
func (t *Tier) Has(key string) bool {
	i, found := t.cache.peek(key)
	return found && t.serves(i)
}

// serves reports whether the item may be served as fresh. What notices do is looked at last: it was done before notices
// arrive again, and before the echo that follows them.
func (t *Tier) serves(i *Item) bool {
	now := clock.Mono()
	return t.Clock.MonoAt(now) < i.until && t.informed(i.echo, now) &&
		i.generation == t.generation.Load() && !i.gone.Load() && i.standing()
}

// informed reports whether notices are known to arrive, and none to be missing.
func (t *Tier) informed(echo *wake.Echo, now time.Duration) bool {
	return t.live() && !t.feed.waiting(now) && (echo == nil || echo.IsYoung(now, t.MaxLag))
}

// IsInformed reports whether no notice of the key can be missing that is older than MaxLag.
func (t *Tier) IsInformed(key string) bool { return t.informed(t.echoOf(key), clock.Mono()) }

func (t *Tier) echoOf(key string) *wake.Echo {
	if t.Echo == nil {
		return nil
	}
	return t.Echo(key)
}

// GetAnyway returns what is kept for the key and not too old, though notices may be missing; nil if there is nothing.
func (t *Tier) GetAnyway(key string) *Item {
	i, found := t.cache.GetIfPresent(key)
	_ = t.feed.waiting(clock.Mono()) // it may void the item
	if !found || i.generation != t.generation.Load() || t.Clock.Mono() >= i.last || !i.standing() {
		return nil
	}
	return i
}

// Mark is the state of a tier before a read. The zero Mark has nothing kept.
type Mark struct {
	live              bool
	at                time.Duration
	generation, epoch uint64
}

// Mark is called before a key is read, for Keep.
func (t *Tier) Mark(key string) Mark {
	now := clock.Mono()
	_ = t.feed.waiting(now) // it may void what is kept, and not what is read from now on
	return Mark{
		live: t.live(), at: t.Clock.MonoAt(now), generation: t.generation.Load(), epoch: t.stripe(key).Load(),
	}
}

// Keep keeps what was read after the mark, unless the key was invalidated since. It is served as fresh for fresh, as
// anything else for usable, and for the TTL at most, from the mark on. It is dropped with any of the names it was made
// under. The item, which is new, is what Get will return.
func (t *Tier) Keep(key string, m Mark, i *Item, value any, size int, fresh, usable time.Duration, under ...NameMark) {
	if !m.live || t.hot != nil && !t.hot.has(key) {
		return
	}
	i.Value, i.bytes, i.generation, i.under, i.echo = value, size, m.generation, under, t.echoOf(key)
	i.until, i.last, i.ends = m.at+min(fresh, t.TTL), m.at+min(max(fresh, usable), t.TTL), m.at+fresh
	epoch := t.stripe(key)
	t.cache.keep(key, i, func() bool { return epoch.Load() == m.epoch })
}

// Forget drops the key. A read under way is not kept: a Keep looks at the epoch and writes in one step, which comes
// before the drop, or finds the new epoch.
func (t *Tier) Forget(key string) {
	t.stripe(key).Add(1)
	t.cache.Invalidate(key)
}

// Void drops everything. A read under way is not served either.
func (t *Tier) Void() { t.generation.Add(1) }

// Missed is called when notices may have been missed.
func (t *Tier) Missed() {
	t.Void()
	t.feed.restart()
}

// Hear takes in a message, and returns it if it is a notice. Own says that the source is this process, which has seen
// to it that the key is forgotten.
func (t *Tier) Hear(payload string, own func(source string) bool) (n Notice, ok bool) {
	n, ok = ParseNotice(payload)
	if !ok {
		if r, is := parseRepetition(payload); is && !own(r.source) {
			t.feed.remind(r)
		}
		return n, false
	}
	switch {
	case own(n.Source):
	case n.Many:
		t.ForgetMany(n.Key)
	default:
		t.Forget(n.Key)
	}
	t.feed.hear(n)
	return n, true
}

// Evictions is how many keys had to give way to others, ever.
func (t *Tier) Evictions() uint64 { return t.evictions.Load() }

// Bytes is about what the keys that are kept take; 0 if not bytes but entries are limited.
func (t *Tier) Bytes() uint64 { return t.cache.WeightedSize() }

// Len is about how many keys are kept.
func (t *Tier) Len() int { return t.cache.EstimatedSize() }

// Close drops everything and frees what the tier holds.
func (t *Tier) Close() {
	t.Void()
	t.cache.InvalidateAll()
}

func (t *Tier) stripe(key string) *atomic.Uint64 {
	return &t.epoch[maphash.String(t.seed, key)%stripes]
}
