package database

import (
	"context"
	"time"

	"github.com/cacheguard/go/consensus/internal/store"
)

// claim is a lock that is held.
type claim struct {
	store   *Store
	name    string
	session Session
	fence   int64
	token   string
	sent    time.Time

	stop context.CancelFunc // ends the keeper; nil: there is none
	kept chan bool          // the keeper's last word: whether the connection lived until then
}

func (c *claim) Fence() int64    { return c.fence }
func (c *claim) Token() string   { return c.token }
func (c *claim) Sent() time.Time { return c.sent }

// Keep asks the connection for signs of life.
func (c *claim) Keep(h store.Holder) {
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	c.kept = make(chan bool, 1)
	c.store.life.Go(func() { c.kept <- c.watch(ctx, h) }) // owner: the claim; stop: Release, then Timeout; joined by it and by Close
}

// watch reports whether the connection lives when ctx ends.
func (c *claim) watch(ctx context.Context, h store.Holder) bool {
	for {
		idle, cancel := context.WithTimeout(ctx, c.store.ttl/3)
		err := c.session.Idle(idle)
		cancel()
		if ctx.Err() != nil && err == nil {
			return true
		}
		sent := time.Now()
		if err == nil {
			err = store.Bounded(context.Background(), c.store.timeout, c.session.Ping) // Release does not end it, which would break the connection
		}
		if err != nil {
			h.Lost()
			return false
		}
		h.Kept(sent)
	}
}

// Release gives the lock up.
func (c *claim) Release(ctx context.Context) error {
	defer c.store.turns.give(c.name)
	if c.stop != nil {
		c.stop()
		if !<-c.kept {
			c.session.Discard()
			return store.ErrGone
		}
	}
	if err := c.session.Leave(ctx, true); err != nil {
		c.session.Discard()
		return err
	}
	c.session.Return()
	return nil
}
