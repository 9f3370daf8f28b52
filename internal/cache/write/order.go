package write

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
)

// Names are keys and tags that end at once.
type Names struct{ Keys, Tags []string }

// lasting is how long a shared change in a place stands without a renewal: a later one longer than those that it comes
// after.
func (w *Writes) lasting(place int) time.Duration {
	return w.Keys.IntentTTL() + time.Duration(place)*w.Keys.LeaseTTL
}

// requests are about targets of the change in a place. What is named in several stands, and ends, in each, by texts of
// its own.
func (c *Change) requests(place int, on []target) []request {
	text := c.text
	if place > 0 {
		text = strconv.Itoa(place) + ":" + text
	}
	all := requests(on, text)
	for i := range all {
		all[i].place = place
	}
	return all
}

var rank = map[bool]int{true: 1}

// steps are what the change has named, by place, keys before tags. Nil has named nothing.
func (c *Change) steps() (steps [][]target) {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stands := range c.places {
		steps = append(steps, slices.SortedFunc(maps.Keys(stands), func(a, b target) int {
			return cmp.Compare(rank[a.isEpoch()], rank[b.isEpoch()])
		}))
	}
	return steps
}

// tell removes what each step names, which ends the change on it, and begins a step when Redis has answered the one
// before. What it has not acknowledged is pending from then on, and the steps after that are sent once more after it.
func (w *Writes) tell(ctx context.Context, c *Change, call func(sort, *request) *script.Call, steps ...[]target) (err error) {
	away := make([]error, w.Breakers.Len()) // a part is waited for once
	for place, on := range steps {
		all := c.requests(place, on)
		inParts(all, func(part []request) {
			if of := part[0].part; away[of] == nil {
				away[of] = w.askPart(ctx, "invalidate", part, call)
			} else {
				w.untold("invalidate", part, away[of])
			}
			w.enqueue(part, steps[place+1:])
		})
		if failed := failed(all); failed != nil {
			err, call = errs.Join(err, failed), sort.invalidate // what comes later stands on, as what is pending dies with this process
		}
	}
	return err
}

// again are steps to be sent once more when what failed before them is no longer pending.
type again struct {
	after []target
	steps [][]target
}

// againLocked notes what comes after what has failed, as long as there is room.
func (p *pending) againLocked(after []target, steps [][]target) {
	if n := len(slices.Concat(steps...)); n > 0 && p.waiting.Load()+int64(n) <= mostPending {
		p.again = append(p.again, again{after, steps})
		p.waiting.Add(int64(n))
	}
}

// dueAgain takes what comes after nothing that is pending, step by step those of several calls together.
func (p *pending) dueAgain() (steps [][]target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = slices.DeleteFunc(p.again, func(a again) bool {
		if slices.ContainsFunc(a.after, p.isPendingLocked) {
			return false
		}
		steps = append(steps, make([][]target, max(len(a.steps)-len(steps), 0))...)
		for i, step := range a.steps {
			steps[i] = append(steps[i], step...)
		}
		return true
	})
	return steps
}

// tellAgain sends it, and what fails is pending.
func (w *Writes) tellAgain() {
	steps := w.dueAgain()
	_ = w.tell(context.Background(), new(Change), sort.invalidate, steps...)
	w.pending.mu.Lock()
	defer w.pending.mu.Unlock()
	w.waiting.Add(-int64(len(slices.Concat(steps...))))
	w.pendingChangedLocked("")
}
