package script

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/gather"
)

// Client runs commands, alone and in pipelines.
type Client interface {
	Processor
	Pipeliner
}

// Batcher runs calls that are made at the same time in pipelines: while as many requests as it has lanes are in flight, others
// gather. It has no goroutine: callers take turns in sending for all.
type Batcher struct {
	rdb         Client
	lanes, most int

	mu      sync.Mutex
	sending int       // requests in flight, or about to be
	queue   []*queued // empty unless all lanes are taken
}

type queued struct {
	call    *Call
	carried *atomic.Bool
	cmd     *redis.Cmd
	told    chan bool // size 1; true: it is this caller's turn to send; false: cmd is set
}

// NewBatcher returns a Batcher that has so many requests in flight, with at most so many calls in each.
func NewBatcher(rdb Client, lanes, most int) *Batcher {
	return &Batcher{rdb: rdb, lanes: lanes, most: most}
}

// Run runs the call. It returns when the call has its reply, whatever the context says. The context of the caller that
// sends is that of all calls of its pipeline. Carried is set when another caller sends the call: what goes wrong then is told to
// that one too.
func (b *Batcher) Run(ctx context.Context, call *Call, carried *atomic.Bool) *redis.Cmd {
	q := &queued{call: call, carried: carried}
	b.mu.Lock()
	if b.sending < b.lanes {
		b.sending++
		b.mu.Unlock()
		return b.send(ctx, q)
	}
	q.told = make(chan bool, 1)
	b.queue = append(b.queue, q)
	b.mu.Unlock()
	if <-q.told {
		return b.send(ctx, q)
	}
	return q.cmd
}

// send sends what has gathered, first of all the caller's own.
func (b *Batcher) send(ctx context.Context, own *queued) *redis.Cmd {
	gather.WhileGrowing(b.Waiting)
	others := b.take()
	if len(others) == 0 {
		defer b.next()
		return own.call.Run(ctx, b.rdb)
	}
	calls := make([]*Call, 1, 1+len(others))
	calls[0] = own.call
	for _, q := range others {
		q.carried.Store(true)
		calls = append(calls, q.call)
	}
	cmds := RunAll(ctx, b.rdb, calls)
	b.next()
	for i, q := range others {
		q.cmd = cmds[1+i]
		q.told <- false // size 1, and empty: who is carried was never told to send
	}
	return cmds[0]
}

// take takes from the queue what one more request may carry.
func (b *Batcher) take() []*queued {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), b.most-1)
	others := b.queue[:n:n]
	b.queue = b.queue[n:]
	return others
}

// next gives the lane to the first in the queue.
func (b *Batcher) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.sending--
		return
	}
	first := b.queue[0]
	b.queue = b.queue[1:]
	first.told <- true // size 1, and empty: it is told once
}

// Waiting is how many calls wait to be sent.
func (b *Batcher) Waiting() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(len(b.queue))
}
