package script

import (
	"context"
	"slices"
	"sync"

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
	sending int      // lanes that are taken
	queue   []*Place // empty unless all lanes are
}

// NewBatcher returns a Batcher that has so many requests in flight, with at most so many calls in each.
func NewBatcher(rdb Client, lanes, most int) *Batcher {
	return &Batcher{rdb: rdb, lanes: lanes, most: most}
}

// role is how a call is sent.
type role int

const (
	queued  role = iota // not yet
	leads               // by its caller, who has a lane and may carry others
	carried             // by another caller
	alone               // by its caller, who would not wait
)

// Place is a call's place in a Batcher. Its caller waits until it is Ready, or Leaves, and then Runs it: the wait is not on
// the time of the operation. In the end it Quits.
type Place struct {
	batcher *Batcher
	call    *Call
	role    role          // guarded by batcher.mu until ready is closed
	carries int           // guarded by batcher.mu
	ready   chan struct{} // closed when it is no more queued; nil if it never was
	quit    sync.Once

	// Of a call that is carried.
	cmd   *redis.Cmd
	alike bool          // the call of who carries it failed too
	done  chan struct{} // closed when they are set
}

// Place gives the call a place.
func (b *Batcher) Place(call *Call) *Place {
	p := &Place{batcher: b, call: call, role: leads}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sending < b.lanes {
		b.sending++
		return p
	}
	p.role, p.ready, p.done = queued, make(chan struct{}), make(chan struct{})
	b.queue = append(b.queue, p)
	return p
}

// Alone gives the call a place that is ready and shares nothing.
func (b *Batcher) Alone(call *Call) *Place {
	return &Place{batcher: b, call: call, role: alone}
}

func (p *Place) becomeLocked(r role) {
	p.role = r
	close(p.ready)
}

// Ready is closed when the call is about to be sent; nil: it is, at once.
func (p *Place) Ready() <-chan struct{} { return p.ready }

// Leave has the call be sent alone, unless it is Ready.
func (p *Place) Leave() {
	b := p.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, p); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
		p.becomeLocked(alone)
	}
}

// Quit gives the lane, if the call has one, to the next. A call that is Carried must be Run, any other need not be. Whoever gave up
// waiting for Run quits too: a connection that hangs does so until the client's own time-outs. He first tells whom it may
// concern that the request failed, so that the next in the queue knows.
func (p *Place) Quit() {
	if p.role == leads {
		p.quit.Do(p.batcher.next)
	}
}

// Carried reports whether another caller sends the call.
func (p *Place) Carried() bool { return p.role == carried }

// Told reports whether the caller who sends the call has the same trouble with his own, and tells of it.
func (p *Place) Told() bool {
	if p.role != carried {
		return false
	}
	select {
	case <-p.done:
		return p.alike
	default:
		return true // both wait
	}
}

// Carries is how many others are sent with the call.
func (p *Place) Carries() int {
	p.batcher.mu.Lock()
	defer p.batcher.mu.Unlock()
	return p.carries
}

// Run runs the call. It returns when the call has its reply, whatever the context says. The context of the caller that
// sends is that of all calls of its pipeline, which begin to run when it does.
func (p *Place) Run(ctx context.Context) *redis.Cmd {
	switch p.role {
	case carried:
		<-p.done
		if againAlone(p.cmd.Err()) {
			return p.call.Run(ctx, p.batcher.rdb)
		}
		return p.cmd
	case leads:
		return p.batcher.send(ctx, p)
	}
	return p.call.Run(ctx, p.batcher.rdb)
}

// send sends what has gathered, first of all the caller's own. When that goes well the next need not wait for its caller.
func (b *Batcher) send(ctx context.Context, own *Place) *redis.Cmd {
	gather.WhileGrowing(b.Waiting)
	others := b.take(own)
	if len(others) == 0 {
		cmd := own.call.Run(ctx, b.rdb)
		own.quitIf(cmd)
		return cmd
	}
	calls := make([]*Call, 1, 1+len(others))
	calls[0] = own.call
	for _, p := range others {
		calls = append(calls, p.call)
	}
	cmds := RunAll(ctx, b.rdb, calls)
	own.quitIf(cmds[0])
	for i, p := range others {
		p.cmd, p.alike = cmds[1+i], cmds[0].Err() != nil
		close(p.done)
	}
	return cmds[0]
}

func (p *Place) quitIf(cmd *redis.Cmd) {
	if cmd.Err() == nil {
		p.Quit()
	}
}

// againAlone reports whether the error is one that only some commands of a pipeline get, and for which the client sends a command
// again if it was alone: of a slot that moves, or that nobody serves for a moment, or of a primary that is one no more.
func againAlone(err error) bool {
	return redis.HasErrorPrefix(err, "TRYAGAIN") || redis.HasErrorPrefix(err, "CLUSTERDOWN") || redis.HasErrorPrefix(err, "READONLY")
}

// take takes from the queue what the request of its own call may carry.
func (b *Batcher) take(own *Place) []*Place {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), b.most-1)
	others := slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	for _, p := range others {
		p.becomeLocked(carried)
	}
	own.carries = n
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
	b.queue = slices.Delete(b.queue, 0, 1)
	first.becomeLocked(leads)
}

// Waiting is how many calls wait to be sent.
func (b *Batcher) Waiting() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(len(b.queue))
}
