package mutex

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

// confirm makes replicas acknowledge a grant, whichever connection it came by: it renews the lease, and counts the replicas
// that have the renewal. So it also notices if a failover has forgotten the grant.
func (c *claim) confirm(ctx context.Context, g *queue.Grant) error {
	if c.acks == nil {
		return nil
	}
	reply, sent, err := c.renew(ctx)
	if err == nil && reply != replyKept {
		err = lost(reply)
	}
	g.Sent, g.Length = sent, c.cfg.TTL
	return err
}

// renew extends the lease once.
func (c *claim) renew(ctx context.Context) (reply int, sent time.Time, err error) {
	call := c.renewal(c.cfg.TTL, 0)
	if c.acks != nil {
		cmds, sent := c.acks.Run(ctx, []*script.Call{&call})
		reply, err = cmds[0].Int()
		return reply, sent, err
	}
	answer, err := c.redis.Ask(ctx, call, nil)
	if err != nil {
		return 0, sent, err
	}
	reply, err = answer.Int()
	return reply, answer.Sent, err
}

// giveBack releases in the background a lock that was granted but not acknowledged. Only calls that the life counts may use
// it.
func (c *claim) giveBack(q *localQueue) {
	c.life.Go(func() { _, _ = c.handOver(c, q) }) // owner: the Locker's life; stop: RedisTimeout; joined by Close
}
