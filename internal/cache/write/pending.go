package write

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/errs"
)

const (
	mostPending      = 100_000 // keys, and as many epochs
	firstReplayPause = 100 * time.Millisecond
	maxReplayPause   = 2 * time.Second
	maxResolved      = 1 << 13 // bounds pending.resolved
)

// pending are the invalidations that failed. They are sent again in the background until they succeed, each part of the
// keyspace for itself, and their targets are not read from Redis until then.
type pending struct {
	keys, epochs atomic.Int64  // how many there are, to check quickly whether there are any
	waiting      atomic.Int64  // how many come after them
	moment       atomic.Uint64 // grows with each epoch that is resolved

	mu       sync.Mutex
	parts    map[int]map[target]replay // with those that are being sent
	last     uint64
	resolved map[target]uint64 // the moments when epochs were resolved, after lost
	lost     uint64            // up to this moment, any may have been

	again []again
}

type replay struct {
	since uint64 // when it failed last, as a number that grows
	told  string // the same for all its replays: local tiers would miss a number that they never get
}

// Pending is how many invalidations of keys and names are pending, and come after those.
func (p *pending) Pending() int { return int(p.keys.Load() + p.epochs.Load() + p.waiting.Load()) }

// IsPending reports whether an invalidation of the key is.
func (w *Writes) IsPending(key string) bool {
	return w.pending.keys.Load() > 0 && w.hadSince(w.key(keys{w}, key), w.Moment())
}

// PendingOf is how many of the keys begin so.
func (p *pending) PendingOf(prefix string) (n int) {
	if p.keys.Load() == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.parts {
		for t := range part {
			if !t.isEpoch() && strings.HasPrefix(t.name, prefix) {
				n++
			}
		}
	}
	return n
}

// Moment is where the changes of what is pending stand, for package epoch, as Quiet and Had.
func (p *pending) Moment() uint64 { return p.moment.Load() }

// Quiet reports whether no name was pending at any time since the moment.
func (p *pending) Quiet(since uint64) bool {
	return p.epochs.Load() == 0 && p.moment.Load() == since
}

// Had reports whether the name's invalidation in that part was pending at any time since the moment.
func (w *Writes) Had(name string, part int, since uint64) bool {
	return w.hadSince(target{epochs{w}, part, name}, since)
}

func (p *pending) hadSince(t target, since uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isPendingLocked(t) || since < p.lost || p.resolved[t] > since
}

func (p *pending) isPendingLocked(t target) bool {
	_, is := p.parts[t.part][t]
	return is
}

// enqueue has what failed sent again, and the steps after it then, as long as there is room. Only tasks may call it.
func (w *Writes) enqueue(all []request, after [][]target) {
	for _, part := range w.addPending(all, after) {
		w.Life.Go(func() { // owner: the Guard; stop: the end of the Guard, when it tries once more; joined by Close
			w.Life.Until(firstReplayPause, maxReplayPause, func() bool { return w.replayed(part) })
		})
	}
}

// addPending returns the parts whose replays are to be started.
func (w *Writes) addPending(all []request, after [][]target) (start []int) {
	p, failed := &w.pending, []target(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	for i := range all {
		r := &all[i]
		if r.err == nil {
			continue
		}
		t := w.plain(r.target)
		failed = append(failed, t)
		k, again := p.parts[t.part][t]
		if !again && p.count(t).Load() >= mostPending {
			continue
		}
		if !again {
			k.told = t.notice(t)
			p.count(t).Add(1)
		}
		k.since = p.last
		if p.parts[t.part] == nil {
			p.parts[t.part] = make(map[target]replay)
			start = append(start, t.part)
		}
		p.parts[t.part][t] = k
	}
	if len(failed) > 0 {
		p.againLocked(failed, after)
		w.pendingChangedLocked(shown(failed[:1])[0])
	}
	return start
}

// plain is the target without an announcement, which a replay does not have.
func (w *Writes) plain(t target) target {
	if !t.isEpoch() {
		t.sort = keys{w}
	}
	return t
}

// Forget names what is pending at the end of the Guard: nobody sends it any more.
func (w *Writes) Forget() {
	w.pending.mu.Lock()
	var left []target
	for _, part := range w.parts {
		left = slices.AppendSeq(left, maps.Keys(part))
	}
	for _, a := range w.again {
		left = append(left, slices.Concat(a.steps...)...)
	}
	w.pending.mu.Unlock()
	if names := shown(left); len(names) > 0 {
		w.Logger.LogAttrs(context.Background(), slog.LevelWarn, "cacheguard: Close forgets invalidations, redis could not be told: invalidate again",
			slog.Int("count", len(names)), slog.String("names", errs.Names(names).String()))
	}
}

// count is how many of the target's sort there are.
func (p *pending) count(t target) *atomic.Int64 {
	if t.isEpoch() {
		return &p.epochs
	}
	return &p.keys
}

func (w *Writes) pendingChangedLocked(key string) {
	w.Owner.ArePending(w.pending.keys.Load() > 0)
	w.Journal.PendingChanged(key)
}

// replayed sends what is pending of a part, and reports whether nothing is left.
func (w *Writes) replayed(part int) bool {
	for {
		all, upTo := w.pendingOf(part)
		if len(all) == 0 {
			return true
		}
		for batch := range slices.Chunk(all, most) {
			_ = w.askPart(context.Background(), "invalidate", batch, sort.invalidate) // each has its error
			w.resolve(batch, upTo)
			w.tellAgain()
			if failed(batch) != nil {
				return false
			}
		}
	}
}

// pendingOf returns what is pending of a part, in the order of the calls, and the largest of the numbers. If nothing
// is, the replay is over.
func (w *Writes) pendingOf(part int) (all []request, upTo uint64) {
	p := &w.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	for t, k := range p.parts[part] {
		all = append(all, request{target: t, told: k.told, since: k.since})
	}
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.since, b.since) })
	if len(all) == 0 {
		delete(p.parts, part)
	}
	return all, p.last
}

// resolve removes what was invalidated, unless it has failed again since.
func (w *Writes) resolve(batch []request, upTo uint64) {
	p := &w.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range batch {
		if k := p.parts[r.part][r.target]; r.err != nil || k.since > upTo {
			continue
		}
		delete(p.parts[r.part], r.target)
		if r.isEpoch() { // before the count says that none is pending
			p.noteResolvedLocked(r.target)
		}
		p.count(r.target).Add(-1)
	}
	w.pendingChangedLocked("")
}

func (p *pending) noteResolvedLocked(epoch target) {
	if p.resolved == nil || len(p.resolved) >= maxResolved {
		p.resolved, p.lost = make(map[target]uint64), p.moment.Load()
	}
	p.resolved[epoch] = p.moment.Add(1)
}
