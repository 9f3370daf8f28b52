package script

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/gather"
)

// maxCalls bounds a pipeline.
const maxCalls = 128

// Batcher runs calls that are made at the same time in pipelines: while one is in flight, others gather. It has no
// goroutine: callers take turns in sending for all.
type Batcher struct {
	rdb Pipeliner

	mu      sync.Mutex
	sending bool // a pipeline is in flight, or somebody was told to send one
	queue   []*queued
}

type queued struct {
	call *Call
	cmd  *redis.Cmd
	done chan struct{} // closed when cmd is set
	turn chan struct{} // size 1: it is this caller's turn to send
}

// NewBatcher returns a Batcher.
func NewBatcher(rdb Pipeliner) *Batcher { return &Batcher{rdb: rdb} }

// Run runs the call. It returns when the call has its reply, whatever the context says. The context of the caller that
// sends is that of all calls of its pipeline.
func (b *Batcher) Run(ctx context.Context, call *Call) *redis.Cmd {
	q := &queued{call: call, done: make(chan struct{}), turn: make(chan struct{}, 1)}
	b.mu.Lock()
	b.queue = append(b.queue, q)
	b.nextLocked()
	b.mu.Unlock()
	for {
		select {
		case <-q.done:
			return q.cmd
		case <-q.turn:
			b.send(ctx)
		}
	}
}

// nextLocked tells the first in the queue to send, unless somebody does.
func (b *Batcher) nextLocked() {
	if len(b.queue) > 0 && !b.sending {
		b.sending = true
		b.queue[0].turn <- struct{}{} // size 1, and empty: it is told once
	}
}

func (b *Batcher) queued() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(len(b.queue))
}

func (b *Batcher) send(ctx context.Context) {
	gather.WhileGrowing(b.queued)
	b.mu.Lock()
	n := min(len(b.queue), maxCalls)
	batch := b.queue[:n:n]
	b.queue = b.queue[n:]
	b.mu.Unlock()

	calls := make([]*Call, n)
	for i, q := range batch {
		calls[i] = q.call
	}
	cmds := RunAll(ctx, b.rdb, calls)

	b.mu.Lock()
	b.sending = false
	b.nextLocked()
	b.mu.Unlock()
	for i, q := range batch {
		q.cmd = cmds[i]
		close(q.done)
	}
}
