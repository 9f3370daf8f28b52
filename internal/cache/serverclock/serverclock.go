// Package serverclock estimates the time of the servers, because entries say by that when they were written. The
// estimate only serves to judge the age of entries, never to decide who may write.
//
// The estimate runs ahead by at most a round trip, so entries look no younger than they are. Until there is a first
// reading, the local clock serves.
//
// A server's clock may be set, and another server with another clock may take its place. So a Guard does not replace an
// entry that looks too old before acquire.lua has compared it with the clock itself. When that finds the entry fresh,
// the Guard uses it, and notes the reading that came with the reply.
package serverclock

import (
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

const (
	// Pause is the least time between two readings.
	Pause = time.Second

	valid = time.Minute // how long a reading is used before the next one is taken
	slack = time.Second // an entry from so far in the future shows that the reading is wrong
)

// Servers are what Clocks need to know of the servers behind a keyspace.
type Servers struct {
	Parts      int                                            // of the keyspace, each with a clock
	PartOf     func(key string) int                           // the part that a key belongs to
	Time       func(key string) (server time.Time, err error) // asks the server that has the key
	Background func(task func()) bool                         // runs a task, and reports whether it will
	Clock      clock.Clock                                    // of this process; a manual one is the servers' clock, too
	Stepped    func(key string, by time.Duration)             // called when a clock shows another time than it should; nil: nobody wants to know
}

// Clocks are the clocks of the servers behind a keyspace. It is safe for concurrent use.
type Clocks struct {
	servers Servers
	clocks  []serverClock
}

type serverClock struct {
	asking atomic.Bool
	last   atomic.Pointer[reading]
}

type reading struct {
	server time.Time
	asked  time.Time     // by the local clock, a monotonic one
	within time.Duration // how long the reply took at most
}

// New returns clocks that know nothing yet.
func New(s Servers) *Clocks { return &Clocks{servers: s, clocks: make([]serverClock, s.Parts)} }

// Age is the time since the server that has the key showed written. Age takes a reading when it needs a new one.
func (c *Clocks) Age(key string, written time.Time) time.Duration {
	if c.servers.Clock.Manual() {
		return c.servers.Clock.Since(written) // an estimate would be wrong when the clock is moved while it is made
	}
	server, asked := c.Last(key)
	if asked.IsZero() {
		c.ask(key)
		return time.Since(written)
	}
	since := time.Since(asked)
	age := server.Sub(written) + since
	if since > valid || age < -slack && since > Pause {
		c.ask(key)
	}
	return age
}

// Note notes what the clock of the key's server showed, and when, by the Clock of this process, it was asked. It mends
// a wrong estimate.
func (c *Clocks) Note(key string, server, asked time.Time) {
	now := &reading{server: server, asked: asked, within: c.servers.Clock.Since(asked)}
	last := c.of(key).last.Swap(now)
	if last == nil || c.servers.Stepped == nil || c.servers.Clock.Manual() { // moving that clock moves the servers', too
		return
	}
	by := server.Sub(last.server) - asked.Sub(last.asked)
	if by.Abs() > slack+last.within+now.within {
		c.servers.Stepped(key, by)
	}
}

// Last is the last reading of the key's server, and when it was asked for; zero: there is none.
func (c *Clocks) Last(key string) (server, asked time.Time) {
	if last := c.of(key).last.Load(); last != nil {
		return last.server, last.asked
	}
	return server, asked
}

func (c *Clocks) of(key string) *serverClock {
	if len(c.clocks) == 1 {
		return &c.clocks[0]
	}
	return &c.clocks[c.servers.PartOf(key)]
}

// ask takes a reading in the background, unless one is under way.
func (c *Clocks) ask(key string) {
	of := c.of(key)
	if of.asking.Swap(true) {
		return
	}
	_ = c.servers.Background(func() { // if it does not run, nobody needs the time any more
		defer of.asking.Store(false)
		asked := c.servers.Clock.Now()
		if server, err := c.servers.Time(key); err == nil {
			c.Note(key, server, asked)
		}
	})
}
