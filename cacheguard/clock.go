package cacheguard

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clockValid is how long a reading of the server's clock is used before the next one is taken.
const clockValid = time.Minute

// serverClock estimates the server's time, by which entries say when they were written. It is only used to judge their
// age, never to decide who may write. The estimate runs ahead by at most a round trip, so entries look no younger than
// they are; until the first reading there is, the local clock serves.
type serverClock struct {
	reading atomic.Bool
	last    atomic.Pointer[clockReading]
}

type clockReading struct {
	server time.Time
	asked  time.Time // by the local, monotonic clock
}

// age is the time since the server's clock showed written.
func (g *Guard) age(written time.Time) time.Duration {
	last := g.serverClock.last.Load()
	if last == nil || time.Since(last.asked) > clockValid {
		g.readServerClock()
	}
	if last == nil {
		return time.Since(written)
	}
	return last.server.Sub(written) + time.Since(last.asked)
}

// readServerClock takes a reading in the background.
func (g *Guard) readServerClock() {
	if g.serverClock.reading.Swap(true) || !g.begin() {
		return
	}
	go func() { // owner: the Guard; stop: RedisTimeout; joined by Close
		defer g.tasks.Done()
		defer g.serverClock.reading.Store(false)
		asked := time.Now()
		server, err := bounded(context.Background(), g, func(ctx context.Context) (time.Time, error) {
			cmd := redis.NewTimeCmd(ctx, "time")
			_ = g.rdb.Process(ctx, cmd) // the command keeps its error
			return cmd.Result()
		}, nil)
		if err == nil {
			g.serverClock.last.Store(&clockReading{server: server, asked: asked})
		}
	}()
}
