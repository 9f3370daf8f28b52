package mutex

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
)

// bid is one call's way to a lock of a Quorum. Each try has a new one, so that leftovers of another are not in the way.
type bid struct {
	calls

	lease  locker.Lease
	of     *Quorum
	trails []send.Trail  // one for each server
	misses []atomic.Bool // the servers that do not have the lease, by their last answers
}

func (q *Quorum) newBid(ctx context.Context, name string) *bid {
	cfg := &q.base.Config
	b := &bid{calls: newCalls(ctx, lockKey(cfg.Prefix, name), cfg.Instance), of: q}
	b.trails, b.misses = make([]send.Trail, len(q.servers)), make([]atomic.Bool, len(q.servers))
	b.lease.Locker, b.lease.Claim, b.lease.Name, b.lease.Token = q.base, b, name, b.token
	return b
}

// take asks every server for the lock, and returns the greatest fence that a majority granted.
func (b *bid) take(ctx context.Context) (fence int64, err error) {
	votes, ok := b.of.ballot(func(i int) vote {
		reply, err := b.of.servers[i].Ask(ctx, b.asking(b.ttl(), 0, 0, ""), &b.trails[i])
		if err != nil {
			return vote{err: err}
		}
		answer, err := parseAnswer(reply.Cmd, b.ttl())
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
func (b *bid) renew(ctx context.Context, fence int64) error {
	votes, ok := b.of.ballot(func(i int) vote {
		v := counted(b.of.servers[i].Ask(ctx, b.renewal(b.ttl(), fence), nil))
		b.misses[i].Store(v.err == nil && v.reply == queue.Lost)
		return v
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

// join asks for the lock on the servers that do not have the lease, once a majority has extended it. Package mutex says why that is safe.
func (b *bid) join(ctx context.Context) {
	for i := range b.misses {
		if b.misses[i].Swap(false) {
			b.of.base.Life.Go(func() { // owner: the Quorum; stop: RedisTimeout; joined by Close
				_, _ = b.of.servers[i].Ask(ctx, b.asking(b.ttl(), 0, 0, ""), &b.trails[i]) // the next renewal tells
			})
		}
	}
}

func (b *bid) ttl() time.Duration { return b.of.base.Config.TTL }

// Renewal is not asked for: watch renews the lease.
func (b *bid) Renewal() script.Call { return script.Call{} }

// Extend extends the lease at once.
func (b *bid) Extend(ctx context.Context) (reply int, sent time.Time, err error) {
	sent = time.Now()
	switch err = b.renew(ctx, b.lease.Fence()); {
	case errors.Is(err, ErrRevoked):
		return queue.Revoked, sent, nil
	case errors.Is(err, ErrLeaseLost):
		return queue.Lost, sent, nil
	case err == nil:
		b.join(ctx)
	}
	return queue.Done, sent, err
}

// watch renews the lease.
func (b *bid) watch() {
	timer := time.NewTimer(b.ttl() / 3)
	defer timer.Stop()
	for ctx := b.lease.Context(); ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		reply, sent, err := b.Extend(ctx)
		if err == nil {
			err = b.lease.Answered(sent, reply)
		}
		if err == nil {
			timer.Reset(b.ttl() / 3)
		} else {
			timer.Reset(b.ttl() / 10)
		}
	}
}

// Lost need not do anything: the lease ends on the servers.
func (b *bid) Lost() {}

// GiveUp releases the lock everywhere. It is released when a majority says so.
func (b *bid) GiveUp(bool) (reply int, err error) {
	votes, ok := b.of.ballot(func(i int) vote {
		if !b.trails[i].Close() {
			return vote{err: errUnasked}
		}
		return counted(b.of.servers[i].Release(b.releasing(successor{}, b.trails[i].Lost()), b.ttl()))
	})
	if ok {
		return queue.Done, nil
	}
	if err := verdict(votes, ErrLeaseLost); !errors.Is(err, ErrLeaseLost) {
		return 0, err
	}
	return queue.Lost, nil
}

// counted is the vote of a server whose answer is a number.
func counted(answer send.Reply, err error) vote {
	if err != nil {
		return vote{err: err}
	}
	reply, err := answer.Int()
	return vote{reply: reply, err: err}
}

// Abandon gives back in the background whatever the servers have granted.
func (b *bid) Abandon() {
	for i, server := range b.of.servers {
		server.Leave(&b.trails[i], func(lost bool) script.Call { return b.releasing(successor{}, lost) }, b.ttl())
	}
}
