package mutex

import (
	"context"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

// confirm makes replicas acknowledge a grant, if Config.Replicas asks for it.
func (c *claim) confirm(ctx context.Context, g *queue.Grant) error {
	return c.base.Confirm(ctx, func() script.Call { return c.renewal(c.base.Config.TTL, 0) }, g)
}

// giveBack releases in the background a lock that was granted but not acknowledged. Only calls that the life counts may use
// it.
func (c *claim) giveBack(q *localQueue) {
	c.life.Go(func() { _, _ = c.handOver(c, q) }) // owner: the Locker's life; stop: RedisTimeout; joined by Close
}
