package write

import (
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
	moment       atomic.Uint64 // grows with each epoch that is resolved

	mu       sync.Mutex
	parts    map[int]map[target]replay // with those that are being sent
	last     uint64
	resolved map[target]uint64 // the moments when epochs were resolved, after lost
	lost     uint64            // up to this moment, any may have been

	after map[target]struct{} // ends again whenever some of it has reached Redis: others may have made that of old values
}

type replay struct {
	since uint64 // when it failed last, as a number that grows
	told  string // the same for all its replays: local tiers would miss a number that they never get
}

// Pending is how many invalidations of keys and names are pending.
func (p *pending) Pending() int { return int(p.keys.Load() + p.epochs.Load()) }

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
	_, pending := p.parts[t.part][t]
	return pending || since < p.lost || p.resolved[t] > since
}

// enqueue has what failed sent again, and then what is to end after it, as long as there is room. Only tasks may call it.
func (w *Writes) enqueue(all []request, after []target) {
	for _, part := range w.addPending(all, after) {
		w.Life.Go(func() { // owner: the Guard; stop: the end of the Guard, when it tries once more; joined by Close
			w.Life.Until(firstReplayPause, maxReplayPause, func() bool { return w.replayed(part) })
		})
	}
}

// addPending returns the parts whose replays are to be started.
func (w *Writes) addPending(all []request, after []target) (start []int) {
	p, first := &w.pending, ""
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	for i := range all {
		r := &all[i]
		if r.err == nil {
			continue
		}
		if first == "" {
			first = shown([]target{r.target})[0]
		}
		t := w.plain(r.target)
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
	if first != "" {
		for _, t := range after[:min(len(after), mostPending-len(p.after))] {
			p.after[w.plain(t)] = struct{}{}
		}
		w.pendingChangedLocked(first)
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
		batch, upTo := w.pendingBatch(part)
		if len(batch) == 0 {
			return true
		}
		_ = w.askPart(context.Background(), "invalidate", batch, sort.invalidate) // each has its error
		w.tellAfter(batch)
		w.resolve(batch, upTo)
		if failed(batch) != nil {
			return false
		}
	}
}

// pendingBatch returns some of what is pending of a part, and the largest of the numbers. If nothing is, the replay is
// over.
func (w *Writes) pendingBatch(part int) (batch []request, upTo uint64) {
	p := &w.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	for t, k := range p.parts[part] {
		if batch = append(batch, request{target: t, told: k.told}); len(batch) == most {
			break
		}
	}
	if len(batch) == 0 {
		delete(p.parts, part)
	}
	return batch, p.last
}

// tellAfter ends what may be made of what was invalidated.
func (w *Writes) tellAfter(batch []request) {
	w.pending.mu.Lock()
	after := slices.Collect(maps.Keys(w.after))
	w.pending.mu.Unlock()
	if len(after) > 0 && slices.ContainsFunc(batch, func(r request) bool { return r.err == nil }) {
		_ = w.tell(context.Background(), requests(after, ""), sort.invalidate) // what fails is pending
	}
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
	if p.Pending() == 0 {
		clear(p.after)
	}
	w.pendingChangedLocked("")
}

func (p *pending) noteResolvedLocked(epoch target) {
	if p.resolved == nil || len(p.resolved) >= maxResolved {
		p.resolved, p.lost = make(map[target]uint64), p.moment.Load()
	}
	p.resolved[epoch] = p.moment.Add(1)
}
