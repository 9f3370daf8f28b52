package bench

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// slowDB takes 200 ms to make a value, and remembers when it did.
type slowDB struct {
	mu            sync.Mutex
	values        map[string][]byte
	running, most int
	runs          map[string][]span // in the order of their ends
}

type span struct{ from, to time.Time }

func (s span) length() time.Duration { return s.to.Sub(s.from) }

func newSlowDB() *slowDB {
	return &slowDB{values: make(map[string][]byte), runs: make(map[string][]span)}
}

func (d *slowDB) value(key string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.values[key] == nil {
		d.values[key] = scenario.ValueOf(key, valueSize)
	}
	return d.values[key]
}

func (d *slowDB) loader(key string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		const takes = 200 * time.Millisecond
		began := time.Now()
		d.begin()
		done := until(ctx, began.Add(takes))
		d.end(key, span{began, time.Now()})
		if !done {
			return nil, context.Cause(ctx)
		}
		return d.value(key), nil
	}
}

func (d *slowDB) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running++
	d.most = max(d.most, d.running)
}

func (d *slowDB) end(key string, s span) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	d.runs[key] = append(d.runs[key], s)
}

func (d *slowDB) loads() (n int) {
	for _, runs := range d.runs {
		n += len(runs)
	}
	return n
}

// longest is the longest load.
func (d *slowDB) longest() (longest time.Duration) {
	for _, runs := range d.runs {
		for _, run := range runs {
			longest = max(longest, run.length())
		}
	}
	return longest
}

// without is the part of a visit when no load of its key ran.
func (d *slowDB) without(v *visit) time.Duration {
	left, from := v.took(), v.due
	for _, run := range d.sorted(v.key) { // they may overlap: one through the lease, one without Redis
		run.from, run.to = latest(run.from, from), earliest(run.to, v.ended)
		if run.length() > 0 {
			left -= run.length()
			from = run.to
		}
	}
	return left
}

func (d *slowDB) sorted(key string) []span {
	runs := slices.Clone(d.runs[key])
	slices.SortFunc(runs, func(a, b span) int { return a.from.Compare(b.from) })
	return runs
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
