package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// feedDelay is how long the feed of the lab takes to learn of a write: the database of the lab is simulated, and so is its log. A feed of a real log takes about
// as long as two queries.
const feedDelay = 20 * time.Millisecond

// writePast writes the product as somebody does who knows nothing of the cache: a migration, another service. With the feed, an instance that reads the
// database's log invalidates it.
func (l *lab) writePast() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.writing.CompareAndSwap(false, true) {
		return
	}
	feed := l.settings.Feed
	l.pays("")          // what follows is no expiry
	l.tasks.Go(func() { // owner: l; stop: it is short, but for a Redis that is down, and for that the end of the instances; joined by renew and close
		version := l.db.version.Add(1)
		l.ledger.wrote(version)
		l.ledger.note(fmt.Sprintf("Somebody wrote version %d past the cache.", version))
		l.writing.Store(false)
		if feed {
			l.follow(version)
		}
	})
}

// follow invalidates the product by an instance that lives, as often as it takes.
func (l *lab) follow(version int64) {
	for {
		in := l.pick(rand.N(instances))
		if in == nil {
			return // nobody is there who could serve an old value
		}
		wait(in.ctx, feedDelay)
		if in.shop.forget(in.ctx) == nil {
			l.ledger.note(fmt.Sprintf("The feed on %s invalidated version %d and what is older.", in.name, version-1))
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
