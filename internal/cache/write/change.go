package write

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// ErrDone is why a change takes no more names.
var ErrDone = errors.New("cacheguard: intent is done")

// Change is what a write, or a transaction, changes.
type Change struct {
	of     *Writes
	text   string // what Redis has of it
	shared bool   // it is a dead man's switch around a transaction; else an Update's
	since  time.Time

	mu     sync.Mutex
	places []map[target]*stand // in the order in which they end
	tagged bool                // tags are named
	timer  *time.Timer         // fires when Timeout is over
	over   bool                // nothing is renewed any more
	called bool                // Done was
	done   sync.Once
	err    error // what Done returned
}

func (w *Writes) change(shared bool) *Change {
	return &Change{of: w, text: rand.Text(), shared: shared, since: time.Now()}
}

// Begin begins a shared change that names nothing yet, and that Timeout bounds. It is followed by Done or Stop.
func (w *Writes) Begin() *Change {
	c := w.change(true)
	c.text += " " + strconv.FormatInt(c.since.UnixMilli(), 10) + " " + w.Keys.Instance
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stand[c] = struct{}{}
	w.Owner.AreIntended(true)
	c.limit(c.expire)
	return c
}

// add notes what is named, so that Done invalidates it, and returns what Redis is not known to have: what is new, and
// what was named by a call that failed, or has no answer yet.
func (c *Change) add(places []Names) (added []request, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.endedLocked(); err != nil {
		return nil, err
	}
	asked := make(map[*stand]bool) // what is named twice is asked for once
	for place, names := range places {
		c.tagged = c.tagged || len(names.Tags) > 0
		for _, t := range c.of.targets(names.Keys, epoch.OfTags(names.Tags)) {
			if s := c.standLocked(place, t); !s.placed && !asked[s] {
				added, asked[s] = append(added, s.request), true
			}
		}
	}
	return added, nil
}

// standLocked is how the change stands on the target, in a place.
func (c *Change) standLocked(place int, t target) *stand {
	for len(c.places) <= place {
		c.places = append(c.places, make(map[target]*stand))
	}
	s := c.places[place][t]
	if s == nil {
		s = &stand{request: c.requests(place, []target{t})[0], change: c}
		c.places[place][t] = s
	}
	return s
}

// hasLocked reports whether the target is named.
func (c *Change) hasLocked(t target) bool {
	return slices.ContainsFunc(c.places, func(stands map[target]*stand) bool { return stands[t] != nil })
}

// ended is why the change can take nothing more; nil: it can.
func (c *Change) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endedLocked()
}

func (c *Change) endedLocked() error {
	switch {
	case c.called:
		return ErrDone
	case c.of.Life.Ending.Err() != nil: // also where Close has not seen the change
		return c.of.Closed
	case c.over:
		return c.overdue()
	}
	return nil
}

func (c *Change) overdue() error {
	return fmt.Errorf("cacheguard: intent stood for longer than UpdateTimeout (%v): %w", c.of.Timeout, lifecycle.ErrLeaseLost)
}

// names reports whether the key is named, and whether tags are. A change names nothing after Done: only then is the
// transaction over.
func (c *Change) names(key string) (named, tags bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.called {
		return false, false
	}
	return c.hasLocked(c.of.key(keys{c.of}, key)), c.tagged
}

// namesTag reports whether one of the tags is named.
func (c *Change) namesTag(tags protocol.Tags) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for tag := range tags.All() {
		if c.hasLocked(target{sort: epochs{c.of}, name: epoch.OfTag(string(tag))}) { // in the first part as in all
			return true
		}
	}
	return false
}

// Past says which changes a call must read past the cache for, according to its context.
type Past struct {
	Named  *Change   // the innermost that names the key; nil: none does
	tagged []*Change // changes that name tags, which a value may have
}

// Add adds a shared change of the Guard, if it names the key, or tags. Nil adds nothing.
func (p *Past) Add(of *Writes, c *Change, key string) {
	if c == nil || c.of != of {
		return
	}
	named, tags := c.names(key)
	if named && p.Named == nil {
		p.Named = c
	}
	if tags {
		p.tagged = append(p.tagged, c)
	}
}

// Any reports whether there are such changes.
func (p *Past) Any() bool { return p.Named != nil || len(p.tagged) > 0 }

// Must reports whether the call has to go past the cache after all, once that has been read: what it found has a tag
// that is named, or Redis did not say what tags there are (not known).
func (p *Past) Must(known bool, stamp protocol.Stamp) bool {
	if p.Named != nil || p.Any() && !known {
		return true
	}
	for _, c := range p.tagged {
		if c.namesTag(stamp.Tags) {
			return true
		}
	}
	return false
}
