package rwlock

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

// confirm has replicas acknowledge a grant, whichever connection it came by: it renews the lease, and counts what the replicas
// have then. So it also finds that a failover has forgotten the grant.
func (c *claim) confirm(ctx context.Context, g *queue.Grant) error {
	if c.acks == nil {
		return nil
	}
	reply, sent, err := c.renew(ctx, g.Fence)
	if err == nil && reply != replyDone {
		err = lost(int(reply))
	}
	g.Sent, g.Length = sent, c.cfg.TTL
	return err
}

// renew extends the lease of the fence once.
func (c *claim) renew(ctx context.Context, fence int64) (reply int64, sent time.Time, err error) {
	call := c.extend(c.token, c.cfg.TTL, fence)
	if c.acks == nil {
		return c.run(ctx, call)
	}
	cmds, sent := c.acks.Run(ctx, []*script.Call{&call})
	reply, err = cmds[0].Int64()
	return reply, sent, err
}
