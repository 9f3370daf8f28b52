package cacheguard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// realmLease is how long a Guard trusts its knowledge of the version of a realm, counted from before it asked, so that hits need
	// not ask.
	realmLease = 900 * time.Millisecond
	// realmWait is how long InvalidateAll waits for the end of all such leases. The difference is for clocks that run
	// apart.
	realmWait = time.Second

	firstRefresh = time.Minute // of a version's TTL, after it was first seen
	nextRefresh  = time.Hour
)

// realm is what InvalidateAll invalidates: all entries of the Guard's Prefix, or those of one kind. It has a version for each part of the
// keyspace, so that a node that does not answer makes no keys of others unreachable.
type realm struct {
	kind  string // empty: all
	parts []realmPart
}

type realmPart struct {
	key   string // of the version
	known atomic.Pointer[knowledge]

	mu      sync.Mutex
	drops   uint64    // how often the knowledge was dropped
	refresh time.Time // when the TTL of the version is to be renewed
	last    string    // the version that Redis had last; empty: none, or it was dropped since
}

// knowledge is a version as it was at a time.
type knowledge struct {
	version string    // not empty
	asked   time.Time // before Redis was asked
}

// isFresh reports whether the knowledge may be used, by the monotonic clock and by the wall clock, as the former may stand still
// while the machine is suspended.
func (k *knowledge) isFresh(now time.Time, lease time.Duration) bool {
	return k != nil && now.Sub(k.asked) < lease && now.Round(0).Sub(k.asked.Round(0)) < lease
}

// realm is the realm of a kind.
func (v *versions) realm(kind string) *realm {
	if kind == "" {
		return v.all
	}
	if w, ok := v.kinds.Load(kind); ok {
		return w.(*realm)
	}
	w, _ := v.kinds.LoadOrStore(kind, v.newRealm(kind))
	return w.(*realm)
}

// newRealm finds keys that belong to the parts.
func (v *versions) newRealm(kind string) *realm {
	h := v.guard.health
	w := &realm{kind: kind, parts: make([]realmPart, h.Len())}
	for i, left := 0, h.Len(); left > 0; i++ {
		key := v.guard.keys.RealmKey(kind, i)
		if part := &w.parts[h.Part(key)]; part.key == "" {
			part.key = key
			left--
		}
	}
	return w
}

// drop forgets what is known, and what is being asked for.
func (p *realmPart) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops++
	p.known.Store(nil)
	p.last = ""
}

// outdated forgets a version that seems to have changed.
func (p *realmPart) outdated(version string) {
	if k := p.known.Load(); k != nil && k.version == version {
		p.known.CompareAndSwap(k, nil)
	}
}

// asking is called before Redis is asked for the version, for learn.
func (p *realmPart) asking() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drops
}

// learn notes what Redis had, unless it was dropped since. Without a version, the next load makes one, and until then every call asks.
func (v *versions) learn(p *realmPart, version string, asked time.Time, drops uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.known.Load()
	if drops != p.drops || old != nil && old.asked.After(asked) {
		return
	}
	if p.last != "" && version != p.last && p.key == v.all.parts[v.guard.health.Part(p.key)].key {
		v.guard.journal.forgotten()
	}
	if p.last = version; version == "" {
		return
	}
	if p.refresh.IsZero() {
		p.refresh = asked.Add(firstRefresh)
	}
	if asked.After(p.refresh) {
		p.refresh = asked.Add(nextRefresh)
		v.guard.life.Try(func() { _, _ = v.obtain(context.Background(), []string{p.key}) }) // stop: RedisTimeout; the next one tries again
	}
	if old != nil && old.version != version {
		v.guard.local.void()
	}
	p.known.Store(&knowledge{version: version, asked: asked})
}

// realms holds the versions of the realms that a key belongs to, as they were when a call began or later.
type realms struct {
	versions *versions
	kind     string
	parts    [2]*realmPart // of all keys, and of the kind; nil: none
	part     int
	version  [2]string
	drops    [2]uint64
	asked    asked
	at       time.Time
	redisErr error // the versions are not known
}

// realms begins to read what this Guard does not know, and does not wait. It is followed by wait.
func (v *versions) realms(ctx context.Context, valueKey, kind string) (w realms) {
	part := v.guard.health.Part(valueKey)
	w.versions, w.kind, w.part, w.parts[0] = v, kind, part, &v.all.parts[part]
	if kind != "" {
		w.parts[1] = &v.realm(kind).parts[part]
	}
	w.at = time.Now()
	var keys []string
	for i, p := range w.parts {
		if p == nil {
			continue
		}
		if k := p.known.Load(); k.isFresh(w.at, v.lease) {
			w.version[i] = k.version
		} else {
			w.drops[i] = p.asking()
			keys = append(keys, p.key)
		}
	}
	if len(keys) > 0 {
		w.asked = v.ask(ctx, keys...)
	}
	return w
}

// wait waits for the reads under way. The error is the context's, or says that the Guard is closed.
func (w *realms) wait(ctx context.Context) error {
	if len(w.asked.reads) == 0 {
		return nil
	}
	redisErr, err := w.asked.wait(ctx)
	if err != nil {
		return err
	}
	w.redisErr = redisErr
	for i, p := range w.parts {
		for n, key := range w.asked.keys {
			if read := w.asked.reads[n]; p != nil && p.key == key && read.Err == nil {
				w.version[i] = string(read.Raw)
				w.versions.learn(p, w.version[i], w.at, w.drops[i])
			}
		}
	}
	w.asked = asked{}
	return nil
}

// of returns what the call knows of the realm of a stamp; empty: nothing, because the stamp is of another kind
// than the call.
func (w *realms) of(name []byte) (*realmPart, string) {
	if name[0] == rootStamp {
		return w.parts[0], w.version[0]
	}
	if string(name[1:]) != w.kind { // compared without an allocation
		return &w.versions.realm(string(name[1:])).parts[w.part], ""
	}
	return w.parts[1], w.version[1]
}

// dropAll drops what is known of all realms, so that what the local tier keeps from now on is compared with versions read from
// now on.
func (v *versions) dropAll() {
	for i := range v.all.parts {
		v.all.parts[i].drop()
	}
	v.kinds.Range(func(_, r any) bool {
		for i := range r.(*realm).parts {
			r.(*realm).parts[i].drop()
		}
		return true
	})
}

// making is the making of a version, for all that wait for it.
type making struct {
	done    chan struct{}
	version string // when done is closed
	err     error
}

// makings has those under way, by key.
type makings struct {
	mu    sync.Mutex
	byKey map[string]*making
}
