package replicas

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

const (
	maxFlying = 4   // pipelines to a node: each holds a connection for as long as the replicas take
	maxCalls  = 256 // in one, and those of one caller

	// On a cluster, calls whose key has moved are sent so often, with a pause between, twice as long each time.
	attempts = 4
	pause    = 20 * time.Millisecond
)

// Sender sends calls that count only when replicas have what they wrote.
type Sender struct {
	rdb       script.Pipeliner
	want      int
	timeout   time.Duration
	tasks     lifecycle.Tasks
	manyNodes bool

	mu    sync.Mutex
	lanes map[*redis.Client]*lane // by node; nil: the client itself
}

// lane is what goes to one node. It is there while something does.
type lane struct {
	node   *redis.Client
	queue  []*request
	flying int
}

// request is some calls of one caller, to one node.
type request struct {
	ctx   context.Context //nolint:containedctx // of its caller
	calls []*script.Call
	done  chan struct{}
	cmds  []*redis.Cmd // when done is closed
}

// New returns a Sender that wants that many replicas; nil for none. The tasks join what Run waits for and what it leaves behind; the caller
// of Run makes sure that nobody waits for the tasks yet.
func New(rdb script.Pipeliner, want int, timeout time.Duration, tasks lifecycle.Tasks) *Sender {
	if want <= 0 {
		return nil
	}
	s := &Sender{rdb: rdb, want: want, timeout: timeout, tasks: tasks, lanes: make(map[*redis.Client]*lane)}
	switch rdb.(type) {
	case cluster, ring:
		s.manyNodes = true
	}
	return s
}

// Run runs the calls until ctx ends, or for the time-out. Each command has its own error, which is an Error when too few replicas
// have what it wrote. Sent is before any of the calls was sent that were answered.
func (s *Sender) Run(ctx context.Context, calls []*script.Call) (cmds []*redis.Cmd, sent time.Time) {
	type outcome struct {
		cmds []*redis.Cmd
		sent time.Time
	}
	o, err := lifecycle.Bounded(ctx, s.tasks, s.timeout, func(limited context.Context) (outcome, error) {
		cmds, sent := s.run(leaving{limited, ctx}, calls)
		return outcome{cmds, sent}, nil
	}, nil)
	if err != nil {
		o.cmds = make([]*redis.Cmd, len(calls))
		for i := range o.cmds {
			o.cmds[i] = failed(err)
		}
	}
	return o.cmds, o.sent
}

// leaving is the context of a run, which is over when its caller has left.
type leaving struct {
	context.Context                 //nolint:containedctx // of the run
	caller          context.Context //nolint:containedctx // its end only
}

func (l leaving) Err() error {
	if err := l.caller.Err(); err != nil {
		return err
	}
	return l.Context.Err()
}

func (s *Sender) run(ctx context.Context, calls []*script.Call) (cmds []*redis.Cmd, sent time.Time) {
	cmds, sent = make([]*redis.Cmd, len(calls)), time.Now()
	todo := make([]int, len(calls))
	for i := range todo {
		todo[i] = i
	}
	for attempt := 0; len(todo) > 0; attempt++ {
		s.send(ctx, calls, todo, cmds)
		if !s.manyNodes || attempt+1 == attempts || ctx.Err() != nil {
			break
		}
		var again []int
		for _, i := range todo {
			if moved(cmds[i].Err()) {
				again = append(again, i)
			}
		}
		if todo = again; len(todo) > 0 {
			lifecycle.Sleep(ctx, pause<<attempt)
		}
	}
	return cmds, sent
}

// lookAgain makes a cluster client ask who serves what, if the error says that a node does not serve, or is gone.
func (s *Sender) lookAgain(ctx context.Context, err error) {
	if rdb, is := s.rdb.(cluster); is && (moved(err) || breaker.Unavailable(err)) {
		rdb.ReloadState(ctx)
	}
}

// send sends the calls at the indices, and sets their commands.
func (s *Sender) send(ctx context.Context, calls []*script.Call, at []int, cmds []*redis.Cmd) {
	type part struct {
		*request
		at []int
	}
	var parts []part
	for _, g := range s.byNode(ctx, calls, at, cmds) {
		for len(g.at) > 0 {
			some := g.at[:min(len(g.at), maxCalls)]
			g.at = g.at[len(some):]
			r := &request{ctx: ctx, done: make(chan struct{})}
			for _, i := range some {
				r.calls = append(r.calls, calls[i])
			}
			parts = append(parts, part{r, some})
			s.enqueue(g.node, r)
		}
	}
	for _, p := range parts {
		<-p.done
		for n, i := range p.at {
			cmds[i] = p.cmds[n]
			s.lookAgain(ctx, cmds[i].Err())
		}
	}
}

func (s *Sender) enqueue(node *redis.Client, r *request) {
	s.mu.Lock()
	l := s.lanes[node]
	if l == nil {
		l = &lane{node: node}
		s.lanes[node] = l
	}
	l.queue = append(l.queue, r)
	more := l.flying < maxFlying
	if more {
		l.flying++
	}
	s.mu.Unlock()
	if more {
		s.tasks.Go(func() { s.carryAll(l) }) // owner: the tasks'; stop: an empty queue, and the client's time-outs; joined through them
	}
}

// carryAll carries what is queued until nothing is.
func (s *Sender) carryAll(l *lane) {
	for batch := s.take(l); len(batch) > 0; batch = s.take(l) {
		var calls []*script.Call
		for _, r := range batch {
			calls = append(calls, r.calls...)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(batch[0].ctx), 2*s.timeout)
		cmds := s.carry(ctx, l.node, calls)
		cancel()
		for _, r := range batch {
			r.cmds, cmds = cmds[:len(r.calls)], cmds[len(r.calls):]
			close(r.done)
		}
	}
}

// take returns what goes together next. Without any, the lane has one less who carries.
func (s *Sender) take(l *lane) (batch []*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := 0
	for len(l.queue) > 0 && (len(batch) == 0 || size+len(l.queue[0].calls) <= maxCalls) {
		r := l.queue[0]
		l.queue = l.queue[1:]
		if err := r.ctx.Err(); err != nil {
			r.leave(err)
			continue
		}
		batch = append(batch, r)
		size += len(r.calls)
	}
	if len(batch) > 0 {
		return batch
	}
	if l.flying--; l.flying == 0 {
		delete(s.lanes, l.node)
	}
	return nil
}

// leave answers a request that is not sent.
func (r *request) leave(err error) {
	r.cmds = make([]*redis.Cmd, len(r.calls))
	for i := range r.cmds {
		r.cmds[i] = failed(err)
	}
	close(r.done)
}
