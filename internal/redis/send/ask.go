package send

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Do runs the call. The error is the context's, ErrClosed, ErrTimeout, breaker.ErrOpen, or what the client said, which
// the command has as well.
func (l *Link) Do(ctx context.Context, key string, c *Call) (*redis.Cmd, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	lane := l.calls[l.breakers.Part(key)]
	reply, err := lane.call(ctx, *c)
	return reply.Cmd, err
}

// call makes a worker run the call.
func (l *lane) call(ctx context.Context, c Call) (Reply, error) {
	q := newCall(ctx, l, c)
	if err := l.enqueue(q); err != nil {
		return Reply{}, err
	}
	return q.wait()
}

// newCall is a call that its caller will wait for, or that is told.
func newCall(ctx context.Context, l *lane, c Call) *queuedCall {
	q := &queuedCall{own: awaited{done: make(chan struct{})}}
	q.init(ctx, l, c, &q.own)
	return q
}

// newCallsTogether are calls that one caller will wait for, all of them, or that are told: a feed asks for thousands at
// once.
func newCallsTogether(ctx context.Context, n int, of func(i int) (*lane, Call)) []*queuedCall {
	all, room, by := make([]*queuedCall, n), make([]queuedCall, n), &awaited{done: make(chan struct{})}
	for i := range room {
		l, c := of(i)
		room[i].init(ctx, l, c, by)
		all[i] = &room[i]
	}
	return all
}

func (c *queuedCall) init(ctx context.Context, l *lane, call Call, by *awaited) {
	c.Call, c.lane, c.ctx, c.by, c.waited = call, l, ctx, by, true
	by.open.Add(1)
	if c.Told == nil {
		c.leaves, _ = ctx.Deadline()
	}
}

// enqueue queues a call of the lane.
func (l *lane) enqueue(c *queuedCall) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.arrived++
	l.queue.(*callQueue).add(c)
	l.dispatchLocked()
	return nil
}

// wait waits for the answer, and for those of the calls that were made together with it.
func (c *queuedCall) wait() (Reply, error) {
	select {
	case <-c.by.done:
	case <-c.ctx.Done():
		if c.walkAway() {
			return Reply{}, context.Cause(c.ctx)
		}
	}
	return c.reply, c.err
}

// walkAway reports whether the caller may: not if the answer is there.
func (c *queuedCall) walkAway() bool {
	c.lane.mu.Lock()
	if c.answered {
		c.lane.mu.Unlock()
		return false
	}
	c.waited = false
	if c.queued && len(c.with) == 0 {
		c.lane.queue.(*callQueue).remove(c)
	}
	sent := c.sent
	c.lane.mu.Unlock()
	if !sent {
		c.unanswered(context.Canceled)
	}
	return true
}

// again sends the call once more, if somebody waits for it. Tried: it may have run.
func (c *queuedCall) again(tried bool) {
	c.lane.mu.Lock()
	c.tried = c.tried || tried
	c.alone, c.sent = true, false // what is alone shares no parcel, and is not refused again
	queued := c.waited && !c.lane.closed
	if queued {
		c.lane.queue.(*callQueue).add(c)
		c.lane.dispatchLocked()
	}
	c.lane.mu.Unlock()
	if !queued {
		c.answer(nil, ErrClosed)
		c.unanswered(ErrClosed)
	}
}

// enqueueTogether queues the calls, so that the calls of one lane share requests.
func enqueueTogether(all []*queuedCall) {
	byLane := make(map[*lane][]*queuedCall)
	for _, c := range all {
		byLane[c.lane] = append(byLane[c.lane], c)
	}
	for l, those := range byLane {
		for some := range slices.Chunk(those, l.together()) {
			some[0].with = some[1:]
			if err := l.enqueue(some[0]); err != nil {
				for _, c := range some {
					c.answer(nil, err)
				}
			}
		}
	}
}

// together is how many calls share a request: one, if the client has no pipelines.
func (l *lane) together() int {
	if l.queue.(*callQueue).most == 1 {
		return 1
	}
	return maxTogether
}
