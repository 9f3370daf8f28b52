package mutex

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/link"
	"github.com/cacheguard/go/internal/redis/script"
)

// errUnasked is the vote of a server that could not be reached when the lock was asked for.
var errUnasked = errors.New("not asked")

// vote is what one server says to a request.
type vote struct {
	reply int
	fence int64
	err   error
}

// ballot asks every server at once, and counts until a majority says yes, or no majority can. The others go on by themselves.
func (q *Quorum) ballot(ask func(server int) vote) (votes []vote, ok bool) {
	all := make(chan vote, len(q.servers))
	for i := range q.servers {
		q.life.Go(func() { all <- ask(i) }) // owner: the Quorum; stop: RedisTimeout; joined by Close
	}
	yes := 0
	for range q.servers {
		v := <-all
		votes = append(votes, v)
		if v.err == nil && v.reply == queue.Done {
			yes++
		}
		if yes == q.majority {
			return votes, true
		}
		if len(votes)-yes > len(q.servers)-q.majority {
			return votes, false
		}
	}
	return votes, false
}

// take asks every server for the lock, and returns the greatest fence that a majority granted.
func (q *Quorum) take(ctx context.Context, c *claim, trails []link.Trail) (fence int64, err error) {
	votes, ok := q.ballot(func(i int) vote {
		reply, err := q.servers[i].Ask(ctx, c.asking(q.cfg.TTL, 0, 0, ""), &trails[i])
		if err != nil {
			return vote{err: err}
		}
		answer, err := parseAnswer(reply.Cmd, q.cfg.TTL)
		if !answer.Granted {
			return vote{err: err}
		}
		return vote{reply: queue.Done, fence: answer.Fence}
	})
	for _, v := range votes {
		fence = max(fence, v.fence)
	}
	if !ok {
		err = verdict(votes, ErrNotAcquired)
	}
	return fence, err
}

// renew asks every server to extend the lease and to remember the fence.
func (q *Quorum) renew(ctx context.Context, c *claim, fence int64) error {
	votes, ok := q.ballot(func(i int) vote {
		answer, err := q.servers[i].Ask(ctx, c.renewal(q.cfg.TTL, fence), nil)
		if err != nil {
			return vote{err: err}
		}
		reply, err := answer.Int()
		return vote{reply: reply, err: err}
	})
	if ok {
		return nil
	}
	no := ErrLeaseLost
	for _, v := range votes {
		if v.reply == queue.Revoked {
			no = ErrRevoked
		}
	}
	return verdict(votes, no)
}

// verdict returns why there is no majority: no, if a server said so, because another caller may get one; else the
// errors.
func verdict(votes []vote, no error) error {
	var errs []error
	for _, v := range votes {
		if v.err == nil && v.reply != queue.Done {
			return no
		}
		errs = append(errs, v.err)
	}
	return errors.Join(errs...)
}

// unlock releases the lock everywhere. It is released when a majority says so.
func (q *Quorum) unlock(l *Lease) (int, error) {
	l.hold.End()
	votes, ok := q.ballot(func(i int) vote {
		if !l.trails[i].Close() {
			return vote{err: errUnasked}
		}
		answer, err := q.servers[i].Release(l.claim.releasing(successor{}, l.trails[i].Lost()), q.cfg.TTL)
		if err != nil {
			return vote{err: err}
		}
		reply, err := answer.Int()
		return vote{reply: reply, err: err}
	})
	if ok {
		return queue.Done, nil
	}
	err := verdict(votes, ErrLeaseLost)
	if errors.Is(err, ErrLeaseLost) {
		return queue.Lost, nil
	}
	return 0, err
}

// abandon gives back in the background whatever the servers have granted.
func (q *Quorum) abandon(c *claim, trails []link.Trail) {
	for i, server := range q.servers {
		server.Leave(&trails[i], func(lost bool) script.Call { return c.releasing(successor{}, lost) }, q.cfg.TTL)
	}
}
