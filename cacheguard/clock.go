package cacheguard

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	clockValid = time.Minute // how long a reading of a server's clock is used before the next one is taken
	clockPause = time.Second // at least between two readings
	clockSlack = time.Second // an entry from so far in the future shows that the reading is wrong
)

// serverClock estimates the time of the server that has a part of the keys, by which entries say when they were written. It is
// only used to judge their age, never to decide who may write. The estimate runs ahead by at most a round trip, so entries
// look no younger than they are; until the first reading there is, the local clock serves.
//
// A server's clock may be set, and another server with another clock may take its place. So an entry that looks too old is not
// loaded anew before acquire has compared it with the clock itself: when that says it is fresh, it is used, and the estimate is
// mended.
type serverClock struct {
	reading atomic.Bool
	last    atomic.Pointer[clockReading]
}

type clockReading struct {
	server time.Time
	asked  time.Time // by the local, monotonic clock
}

// clockOf is the clock by which the key's entry was written.
func (g *Guard) clockOf(key string) *serverClock {
	if len(g.serverClocks) == 1 {
		return &g.serverClocks[0]
	}
	return &g.serverClocks[g.health.Part(g.redisKey(key))]
}

// age is the time since the server's clock showed written, for an entry of the key.
func (g *Guard) age(key string, written time.Time) time.Duration {
	c := g.clockOf(key)
	last := c.last.Load()
	if last == nil {
		g.readServerClock(c, key)
		return time.Since(written)
	}
	since := time.Since(last.asked)
	age := last.server.Sub(written) + since
	if since > clockValid || age < -clockSlack && since > clockPause {
		g.readServerClock(c, key)
	}
	return age
}

// readServerClock takes a reading in the background.
func (g *Guard) readServerClock(c *serverClock, key string) {
	if c.reading.Swap(true) {
		return
	}
	if !g.begin() {
		return // closed: nobody reads it any more
	}
	go func() { // owner: the Guard; stop: RedisTimeout; joined by Close
		defer g.tasks.Done()
		defer c.reading.Store(false)
		asked := time.Now()
		call := g.keys.Time(g.redisKey(key))
		millis, err := bounded(context.Background(), g, func(ctx context.Context) (int64, error) {
			return call.Run(ctx, g.rdb).Int64()
		}, nil)
		if err == nil {
			c.read(millis, asked)
		}
	}()
}

// read notes that the server's clock showed so many ms after asked.
func (c *serverClock) read(millis int64, asked time.Time) {
	c.last.Store(&clockReading{server: time.UnixMilli(millis), asked: asked})
}
