package mutex

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/detach"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

// unlock gives a lease up. Its tenure ends with that, unless it was lost before.
func (k *Locker) unlock(ctx context.Context, l *Lease) (int, error) {
	line := l.line
	if !l.hold.End() {
		line = nil
	}
	return k.handOn(ctx, l.who, line)
}

// extend makes a lease end TTL from now.
func (k *Locker) extend(ctx context.Context, l *Lease) error {
	call := l.who.renewal(k.cfg.TTL, 0)
	sent := time.Now()
	reply, err := detach.Run(ctx, &k.life.Tasks, k.redis, func(ctx context.Context, rdb script.Processor) (int, error) {
		return call.Run(ctx, rdb).Int()
	}, nil)
	if err != nil {
		return err
	}
	return l.hold.Answered(sent, reply)
}

// handOn gives the lock up, to the next in the line if it may.
func (k *Locker) handOn(ctx context.Context, w who, line *line) (int, error) {
	code, err := 0, error(nil)
	for first := true; ; first = false {
		next, reply, replyErr := k.release(ctx, w, line)
		if first {
			code, err = reply, replyErr
		}
		if next == nil {
			return code, err
		}
		w = next.who // it was given the lock, and has left
	}
}

// release gives the lock up. It returns whoever was given the lock, and did not wait for it any more.
func (k *Locker) release(ctx context.Context, w who, line *line) (orphan *place, reply int, err error) {
	next, first := line.next()
	h, sent := heir{}, time.Time{}
	if next != nil {
		h = heir{id: next.id, inbox: k.inbox.Address(), ttl: k.cfg.TTL, first: first}
		sent = time.Now()
	}
	fence, err := detach.Run(context.WithoutCancel(ctx), &k.life.Tasks, k.redis,
		func(ctx context.Context, rdb script.Processor) (int64, error) { return w.release(ctx, rdb, h) },
		func(int64, error) { k.giveUpFor(line, next) })
	switch {
	case fence > replyKept:
		if !line.pass(next, queue.Grant{Fence: fence, Sent: sent, Length: k.cfg.TTL}) {
			return next, replyKept, nil
		}
		return nil, replyKept, nil
	case err != nil:
		line.vacate() // the next, should it have the lock, finds out by asking
		k.giveUpFor(line, next)
	default:
		line.vacate()
	}
	return nil, int(fence), err
}

// giveUpFor gives up the lock that was given, or not, to somebody who has left.
func (k *Locker) giveUpFor(line *line, next *place) {
	if next != nil && line.left(next) {
		k.abandon(next.who)
	}
}
