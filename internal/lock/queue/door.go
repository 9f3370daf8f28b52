package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Doors let the first few of a process's callers queue for a lock in Redis. The others wait at the lock's door, in the
// order in which they came, where leaving costs no request. A caller tells Redis when it came, and takes the place of
// that time.
type Doors struct {
	Width     int                             // how many may queue in Redis, for a lock
	RoundTrip func(name string) time.Duration // to Redis and back, as far as is known
	Shared    bool                            // holders share the lock: all callers go in until one has to queue, and again when one is granted it

	mu     sync.Mutex
	byName map[string]*door
}

// door is there while somebody is inside or waits. It is guarded by the mutex of Doors.
type door struct {
	inside  int
	shut    bool // somebody has to queue, as far as is known
	waiting []*Guest
	clock   clock
	last    int64 // the latest arrival, by the server's clock; 0: none is known
}

// Guest is a caller that is inside.
type Guest struct {
	doors   *Doors
	door    *door
	name    string
	came    time.Time
	leaves  time.Time     // at the latest; zero: never
	inside  bool          // guarded by the mutex of Doors
	in      chan struct{} // closed when it may go in; nil: it may have done so at once
	arrived int64         // when it came by the server's clock, in µs; 0: that was not known when it went in
	placed  bool          // it has a place in Redis: later answers are to heartbeats; guarded by the same mutex
}

// Enter waits until the caller may queue in Redis. Each Guest calls Leave.
func (ds *Doors) Enter(ctx, ending context.Context, name string) (*Guest, error) {
	g := ds.knock(ctx, name)
	if g.in == nil {
		return g, nil
	}
	var err error
	select {
	case <-g.in:
		return g, nil
	case <-ctx.Done():
		err = lifecycle.Ended(ctx)
	case <-ending.Done():
		err = context.Cause(ending)
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if g.inside {
		g.leaveLocked()
		return nil, err
	}
	g.door.waiting = slices.DeleteFunc(g.door.waiting, func(other *Guest) bool { return other == g })
	g.door.admitLocked(ds, name)
	return nil, err
}

func (ds *Doors) knock(ctx context.Context, name string) *Guest {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.byName[name]
	if d == nil {
		if ds.byName == nil {
			ds.byName = make(map[string]*door)
		}
		d = new(door)
		ds.byName[name] = d
	}
	g := &Guest{doors: ds, door: d, name: name, came: time.Now()}
	g.leaves, _ = ctx.Deadline()
	d.waiting = append(d.waiting, g)
	if d.admitLocked(ds, name); !g.inside {
		g.in = make(chan struct{})
	}
	return g
}

// admitLocked lets callers in while there is room for them.
func (d *door) admitLocked(ds *Doors, name string) {
	for len(d.waiting) > 0 {
		free := d.inside == 0 || ds.Shared && !d.shut
		if !free && d.inside >= ds.Width {
			break
		}
		i := d.nextLocked(ds.RoundTrip(name), free)
		if i < 0 {
			break
		}
		g := d.waiting[i]
		d.waiting = slices.Delete(d.waiting, i, i+1)
		g.enterLocked()
	}
	if d.inside+len(d.waiting) == 0 {
		delete(ds.byName, name)
	}
}

// nextLocked is the first that has enough time left to make use of a grant that comes later, or of a lock that may be
// free; -1: there is none. When nobody is inside, somebody has to ask.
func (d *door) nextLocked(roundTrip time.Duration, free bool) int {
	needs := margin(roundTrip)
	if free {
		needs = roundTrip
	}
	then := time.Now().Add(needs)
	i := slices.IndexFunc(d.waiting, func(g *Guest) bool { return g.leaves.IsZero() || g.leaves.After(then) })
	if i < 0 && d.inside == 0 {
		return len(d.waiting) - 1
	}
	return i
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
func (g *Guest) Arrived() int64 {
	if g == nil {
		return 0
	}
	return g.arrived
}

// Answered says that the caller has to queue, and what the server's clock showed after sent.
func (g *Guest) Answered(sent time.Time, server int64) {
	if g == nil || server == 0 {
		return
	}
	g.doors.mu.Lock()
	defer g.doors.mu.Unlock()
	g.door.shut = true
	if g.door.clock.learn(sent, time.Now(), server) {
		g.door.last = 0
	}
	if !g.placed && g.arrived == 0 {
		g.door.last = max(g.door.last, server)
	}
	g.placed = true
}

// Granted says that the caller has the lock.
func (g *Guest) Granted() {
	if g == nil {
		return
	}
	g.doors.mu.Lock()
	defer g.doors.mu.Unlock()
	g.door.shut = false
	g.door.admitLocked(g.doors, g.name)
}

// Leave says that the caller does not queue in Redis any more.
func (g *Guest) Leave() {
	if g == nil {
		return
	}
	g.doors.mu.Lock()
	defer g.doors.mu.Unlock()
	g.leaveLocked()
}

func (g *Guest) leaveLocked() {
	g.door.inside--
	g.door.admitLocked(g.doors, g.name)
}
