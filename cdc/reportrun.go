package cdc

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Run looks at what the feed hands over, until ctx ends; the error is its cause then. Run it once, beside the feed's Run.
func (r *Report) Run(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	places := make(chan struct{}, mostSamples)
	for {
		select {
		case s := <-r.samples:
			select {
			case places <- struct{}{}:
			default:
				r.count(func(c *Consistency) { c.Skipped++ })
				continue
			}
			following.Go(func() { // owner: Run; stop: ctx; joined above
				defer func() { <-places }()
				r.follow(ctx, &s)
			})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follow looks at a row until the cache has what the database has, and at the moments.
func (r *Report) follow(ctx context.Context, s *sample) {
	r.count(func(c *Consistency) { c.Rows++ })
	left, agreed := moments[:], false
	for pause := time.Millisecond; len(left) > 0; pause *= 2 {
		due, look := s.committed.Add(left[0]), true
		if sooner := time.Now().Add(pause); !agreed && sooner.Before(due) {
			due, look = sooner, false
		}
		if !wait(ctx, due) {
			return
		}
		same, err := s.same(ctx)
		if ctx.Err() != nil {
			return
		}
		since := time.Since(s.committed)
		if err == nil && same && !agreed {
			agreed = true
			r.consistent(since)
		}
		if look {
			r.looked(ctx, s, len(moments)-len(left), same, err)
			left = left[1:]
		}
	}
}

// looked notes a look at one of the moments.
func (r *Report) looked(ctx context.Context, s *sample, moment int, same bool, err error) {
	if err != nil {
		r.count(func(c *Consistency) { c.Failed++ })
		return
	}
	if same {
		r.count(func(c *Consistency) { c.After[moment].Reads++ })
		return
	}
	old := s.old(ctx, moments[moment])
	r.cfg.Logger.Warn("cdc: the cache served an old value", "table", old.Table, "key", old.Key, "after", old.After.String(), "why", old.Why)
	r.count(func(c *Consistency) {
		c.After[moment].Reads++
		c.After[moment].Old++
		c.Old = append(c.Old, old)
		c.Old = c.Old[max(0, len(c.Old)-mostOld):]
	})
}

// consistent notes how long it took.
func (r *Report) consistent(took time.Duration) {
	took = max(took, 0) // by the database's clock
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found.Longest = max(r.found.Longest, took)
	if len(r.took) < mostTook {
		r.took = append(r.took, took)
		return
	}
	r.took[r.next] = took
	r.next = (r.next + 1) % mostTook
}

// Consistency is what was found so far.
func (r *Report) Consistency() Consistency {
	if r == nil {
		return Consistency{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.found
	c.After, c.Old = slices.Clone(c.After), slices.Clone(c.Old)
	if took := slices.Sorted(slices.Values(r.took)); len(took) > 0 {
		c.P50, c.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return c
}

// wait waits for a moment, and reports whether ctx lasted so long.
func wait(ctx context.Context, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
