package mutex

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/detach"
	"github.com/cacheguard/go/internal/script"
)

// vote is what one server says to a request.
type vote struct {
	reply int
	fence int64
	err   error
}

// ballot sends a request to every server at once, and counts until a majority says yes, or no majority can. The others go
// on by themselves. after, if not nil, is called when a server has replied, however late.
func (q *Quorum) ballot(
	ctx context.Context, ask func(context.Context, script.Processor) vote, after func(Redis),
) (votes []vote, ok bool) {
	if after == nil {
		after = func(Redis) {}
	}
	all := make(chan vote, len(q.clients))
	for _, rdb := range q.clients {
		q.life.Tasks.Go(func() { // owner: the Quorum; stop: RedisTimeout; joined by Close
			v, err := detach.Do(ctx, &q.life.Tasks, q.cfg.RedisTimeout, func(ctx context.Context) (vote, error) {
				return ask(ctx, rdb), nil
			}, func(vote, error) { after(rdb) })
			if err != nil {
				v.err = err // late
			} else {
				after(rdb)
			}
			all <- v
		})
	}
	yes := 0
	for range q.clients {
		v := <-all
		votes = append(votes, v)
		if v.err == nil && v.reply == replyKept {
			yes++
		}
		if yes == q.majority {
			return votes, true
		}
		if len(votes)-yes > len(q.clients)-q.majority {
			return votes, false
		}
	}
	return votes, false
}

// take asks every server for the lock, and returns the greatest fence that a majority granted.
func (q *Quorum) take(ctx context.Context, w who) (fence int64, err error) {
	votes, ok := q.ballot(ctx, func(ctx context.Context, rdb script.Processor) vote {
		answer, err := w.ask(ctx, rdb, q.cfg.TTL, 0, "")
		if !answer.Granted {
			return vote{err: err}
		}
		return vote{reply: replyKept, fence: answer.Fence}
	}, func(rdb Redis) {
		if w.left.Load() {
			w.giveUp(rdb, q.cfg.RedisTimeout)
		}
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
func (q *Quorum) renew(ctx context.Context, w who, fence int64) error {
	call := w.renewal(q.cfg.TTL, fence)
	votes, ok := q.ballot(ctx, func(ctx context.Context, rdb script.Processor) vote {
		reply, err := call.Run(ctx, rdb).Int()
		return vote{reply: reply, err: err}
	}, nil)
	if ok {
		return nil
	}
	no := ErrLeaseLost
	for _, v := range votes {
		if v.reply == replyRevoked {
			no = ErrRevoked
		}
	}
	return verdict(votes, no)
}

// verdict is why there is no majority: no, if a server said so, for then another may come to have one; else the errors.
func verdict(votes []vote, no error) error {
	var errs []error
	for _, v := range votes {
		if v.err == nil && v.reply != replyKept {
			return no
		}
		errs = append(errs, v.err)
	}
	return errors.Join(errs...)
}

// unlock gives the lock up everywhere. It is given up when a majority says so.
func (q *Quorum) unlock(ctx context.Context, l *Lease) (int, error) {
	l.hold.End()
	l.who.left.Store(true)
	votes, ok := q.ballot(context.WithoutCancel(ctx), func(ctx context.Context, rdb script.Processor) vote {
		reply, err := l.who.release(ctx, rdb, heir{})
		return vote{reply: int(reply), err: err}
	}, nil)
	if ok {
		return replyKept, nil
	}
	err := verdict(votes, ErrLeaseLost)
	if errors.Is(err, ErrLeaseLost) {
		return replyLost, nil
	}
	return 0, err
}

// releaseAll gives back in the background whatever the servers have granted.
func (q *Quorum) releaseAll(w who) {
	for _, rdb := range q.clients {
		q.life.Tasks.Go(func() { w.giveUp(rdb, q.cfg.RedisTimeout) }) // owner: the Quorum; stop: RedisTimeout; joined by Close
	}
}
