package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
)

// MaxPasses is how often in a row the callers of a process may hand a lock on among themselves while other processes
// wait.
const MaxPasses = 8

// Doors let the first few of a process's callers queue for a lock in Redis. The others wait at the lock's door, in the
// order in which they came, where leaving costs no request. A caller tells Redis when it came, and takes the place of
// that time. Where only one is let in, and stays until it has given the lock up, it may hand the lock to the next.
type Doors struct {
	Width     int                             // how many may be inside, for a lock: queue in Redis; 0: one
	RoundTrip func(name string) time.Duration // to Redis and back, as far as is known; nil: it is not on Redis
	Shared    bool                            // holders share the lock: all callers go in until one has to queue, and again when one is granted it

	mu     sync.Mutex
	byName map[string]*door
}

// door is there while somebody is inside or waits. It is guarded by the mutex of Doors.
type door struct {
	of      *Doors
	name    string
	inside  int
	passes  int  // how often the lock was handed on here since it was got from Redis
	shut    bool // somebody has to queue, as far as is known
	waiting []*Guest
	begins  [1]*Guest // where waiting begins
	clock   clock
	told    int       // how many are inside who were told that the lock is taken
	until   time.Time // when the last of them left
	last    int64     // the latest arrival, by the server's clock; 0: none is known
}

// Guest is a caller at a door, or inside. The zero Guest came by no door: it does nothing, and hands nothing on.
type Guest struct {
	Claim Claim // the caller's

	door    *door
	came    time.Time
	leaves  time.Time     // at the latest; zero: never
	inside  bool          // guarded by the mutex of Doors
	told    bool          // the lock is its own, or another's, as it was told; guarded by the same
	gone    bool          // it did not wait until it was let in; guarded by the same
	in      chan struct{} // closed when it may go in; nil: it may have done so at once
	grant   *Grant        // what it was handed as it went in; nil: it has to ask Redis
	arrived int64         // when it came by the server's clock, in µs; 0: that was not known when it went in
	placed  bool          // it has a place in Redis: later answers are to heartbeats; guarded by the same mutex
}

// Enter waits until the caller may queue in Redis, or has been handed the lock. Without an error, one Leave or Pass
// follows.
func (g *Guest) Enter(ctx, ending context.Context, ds *Doors, name string) error {
	g.knock(ctx, ds, name)
	if g.in == nil {
		return nil
	}
	var err error
	select {
	case <-g.in:
		return nil
	case <-ctx.Done():
		err = g.left(ctx)
	case <-ending.Done():
		err = context.Cause(ending)
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	switch {
	case g.grant != nil:
		return nil
	case g.inside:
		g.leaveLocked()
	default:
		g.gone = true
		g.door.waiting = slices.DeleteFunc(g.door.waiting, func(other *Guest) bool { return other == g })
		g.door.admitLocked()
	}
	return err
}

// left is the error of a caller whose context has ended: whoever was inside may have been told that the lock is taken.
func (g *Guest) left(ctx context.Context) error {
	g.door.of.mu.Lock()
	defer g.door.of.mu.Unlock()
	if g.door.told > 0 || g.door.until.After(g.came) {
		return lifecycle.Taken(ctx)
	}
	return lifecycle.Ended(ctx)
}

func (g *Guest) knock(ctx context.Context, ds *Doors, name string) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	g.atLocked(ds, name)
	g.leaves, _ = ctx.Deadline()
	g.door.waiting = append(g.door.waiting, g)
	if g.door.admitLocked(); !g.inside {
		g.in = make(chan struct{})
	}
}

// EnterFirst goes in if nobody else is there. Otherwise the Guest stays the zero Guest.
func (g *Guest) EnterFirst(ds *Doors, name string) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.byName[name] == nil {
		g.atLocked(ds, name)
		g.enterLocked()
	}
}

// atLocked brings the caller to the door of the name.
func (g *Guest) atLocked(ds *Doors, name string) {
	d := ds.byName[name]
	if d == nil {
		if ds.byName == nil {
			ds.byName = make(map[string]*door)
		}
		d = &door{of: ds, name: name}
		d.waiting = d.begins[:0]
		ds.byName[name] = d
	}
	g.door, g.came = d, time.Now()
}

// admitLocked lets callers in while there is room for them.
func (d *door) admitLocked() {
	for len(d.waiting) > 0 {
		free := d.inside == 0 || d.of.Shared && !d.shut
		if !free && d.inside >= d.of.Width {
			break
		}
		next := d.nextLocked(free)
		if next == nil {
			break
		}
		d.letInLocked(next)
	}
	if d.inside+len(d.waiting) == 0 {
		delete(d.of.byName, d.name)
	}
}

// nextLocked is the first that has enough time left to make use of a grant that comes later, or of a lock that may be
// free; nil: there is none. When nobody is inside, somebody has to ask.
func (d *door) nextLocked(free bool) *Guest {
	var then time.Time // when it has to be there; it is seldom looked at
	for _, g := range d.waiting {
		if g.leaves.IsZero() || d.of.RoundTrip == nil {
			return g
		}
		if then.IsZero() {
			needs := d.of.RoundTrip(d.name)
			if !free {
				needs = margin(needs)
			}
			then = time.Now().Add(needs)
		}
		if g.leaves.After(then) {
			return g
		}
	}
	if n := len(d.waiting); n > 0 && d.inside == 0 {
		return d.waiting[n-1]
	}
	return nil
}

func (d *door) letInLocked(g *Guest) {
	i := slices.Index(d.waiting, g)
	d.waiting = slices.Delete(d.waiting, i, i+1)
	g.enterLocked()
}

func (g *Guest) enterLocked() {
	d := g.door
	if at := d.clock.at(g.came); at > 0 {
		d.last = max(at, d.last+1) // what is known of the clock changes a little; the order must not
		g.arrived = d.last
	}
	d.inside++
	g.inside = true
	if g.in != nil {
		close(g.in)
	}
}

// Waiting is how many wait at a lock's door.
func (ds *Doors) Waiting(name string) int {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d := ds.byName[name]; d != nil {
		return len(d.waiting)
	}
	return 0
}

// Present reports whether somebody waits for the lock, at its door or inside.
func (ds *Doors) Present(name string) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.byName[name] != nil
}

// Arrived is when the caller came, in µs by the server's clock, as far as that is known; 0: now.
func (g *Guest) Arrived() int64 { return g.arrived }

// Answered says that the caller has to queue, and what the server's clock showed after sent.
func (g *Guest) Answered(sent time.Time, server int64) {
	if g.door == nil || server == 0 {
		return
	}
	g.door.of.mu.Lock()
	defer g.door.of.mu.Unlock()
	g.toldLocked()
	g.door.shut = true
	if g.door.clock.learn(sent, time.Now(), server) {
		g.door.last = 0
	}
	if !g.placed && g.arrived == 0 {
		g.door.last = max(g.door.last, server)
	}
	g.placed = true
}

// atDoor runs f while nobody else changes the caller's door, if it waits at one.
func (g *Guest) atDoor(f func()) {
	if g.door == nil {
		return
	}
	g.door.of.mu.Lock()
	defer g.door.of.mu.Unlock()
	f()
}

// Told says that the lock is taken, by the caller or by others, as the caller has heard. Those who leave the door then
// say so.
func (g *Guest) Told() { g.atDoor(g.toldLocked) }

func (g *Guest) toldLocked() {
	if !g.told {
		g.told = true
		g.door.told++
	}
}

// Granted says that the caller has the lock.
func (g *Guest) Granted() {
	g.atDoor(func() {
		g.toldLocked()
		g.door.shut = false
		g.door.admitLocked()
	})
}

// Leave says that the caller does not queue in Redis any more, or does not have the lock that others are to ask for
// only then.
func (g *Guest) Leave() { g.atDoor(g.leaveLocked) }

func (g *Guest) leaveLocked() {
	g.door.inside--
	if g.told {
		g.door.told--
		g.door.until = time.Now()
	}
	g.door.passes = 0
	g.door.admitLocked()
}
