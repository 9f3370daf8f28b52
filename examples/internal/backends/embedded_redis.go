package backends

import (
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embeddedRedis is a miniredis with a clock that runs.
type embeddedRedis struct {
	server *miniredis.Miniredis
	done   chan struct{} // closed to stop the clock
	exited chan struct{} // closed when the clock has stopped
}

func startEmbeddedRedis() (*embeddedRedis, error) {
	server, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	e := &embeddedRedis{server: server, done: make(chan struct{}), exited: make(chan struct{})}
	go e.clock() // owner: e; stop: done; joined by stop
	return e, nil
}

// clock lets the keys grow old. Without it no TTL would ever pass: miniredis leaves time to its user. Keys live on until
// the next tick, so a tick is short beside the TTLs of the examples.
func (e *embeddedRedis) clock() {
	defer close(e.exited)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-e.done:
			return
		case <-tick.C:
			now := time.Now()
			e.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (e *embeddedRedis) stop() {
	close(e.done)
	<-e.exited
	e.server.Close()
}
