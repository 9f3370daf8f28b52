package reader

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// lane sends one batch at a time.
type lane struct {
	r *Reader

	mu      sync.Mutex
	closed  bool
	sender  *sender          // who sends the batches; nil while there is nothing to send
	ctx     context.Context  //nolint:containedctx // values for the next batch, from its first caller
	pending map[string]*Read // not sent yet
	order   []string         // its keys, first come first sent
}

// sender is a goroutine that sends a lane's batches until there are none. One that Redis holds up is replaced.
type sender struct {
	replaced atomic.Bool
}

// join returns the pending read of the key, a new one if there is none.
func (l *lane) join(ctx context.Context, key string) (*Read, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if read, found := l.pending[key]; found {
		return read, nil
	}
	if l.pending == nil {
		l.pending = make(map[string]*Read)
	}
	if len(l.pending) == 0 {
		l.ctx = context.WithoutCancel(ctx)
	}
	read := &Read{done: make(chan struct{})}
	l.pending[key] = read
	l.order = append(l.order, key)
	if l.sender == nil {
		l.startLocked()
	}
	return read, nil
}

func (l *lane) startLocked() {
	s := new(sender)
	l.sender = s
	l.r.running.Go(func() { l.send(s) }) // owner: the Reader; stop: nothing left to send; joined by Close
}

func (l *lane) send(s *sender) {
	for {
		b := l.take(s)
		if b == nil {
			return
		}
		l.run(s, b)
	}
}

// batch is what one round trip reads.
type batch struct {
	ctx   context.Context //nolint:containedctx // values only
	keys  []string
	reads []*Read
	over  atomic.Bool // delivered, or given up
}

// take makes the next batch of what is pending; nil when the sender has nothing more to do.
func (l *lane) take(s *sender) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.replaced.Load() {
		return nil
	}
	n := min(len(l.order), maxBatch)
	if n == 0 {
		l.sender = nil
		return nil
	}
	b := &batch{ctx: l.ctx, keys: l.order[:n:n], reads: make([]*Read, n)}
	for i, key := range b.keys {
		b.reads[i] = l.pending[key]
		delete(l.pending, key)
	}
	if l.order = l.order[n:]; len(l.order) == 0 {
		l.order = nil
	}
	return b
}

// run sends the batch. When Redis does not answer in time, the batch fails and another sender takes over the lane:
// go-redis may hold this one for as long as its own time-outs and retries say.
func (l *lane) run(s *sender, b *batch) {
	ctx, cancel := context.WithTimeout(b.ctx, l.r.timeout)
	defer cancel()
	giveUp := time.AfterFunc(l.r.timeout, func() {
		l.replace(s)
		l.deliver(b, func(read *Read, _ int) { read.Err = ErrTimeout })
	})
	defer giveUp.Stop()

	cmds := l.r.fetch(ctx, b.keys)
	l.deliver(b, func(read *Read, i int) { read.Raw, read.Err = answer(cmds[i]) })
}

// deliver gives every read its answer, unless that was done before. Those who wait for the next read of a missing key
// are taken off the lane before anybody is told: who acts on the answer and asks again must not be among them.
func (l *lane) deliver(b *batch, set func(read *Read, i int)) {
	if b.over.Swap(true) {
		return
	}
	for i, read := range b.reads {
		set(read, i)
	}
	for _, next := range l.takeMissing(b) {
		close(next.done)
	}
	for _, read := range b.reads {
		close(read.done)
	}
}

// takeMissing takes the pending reads of keys that the batch found missing.
func (l *lane) takeMissing(b *batch) (taken []*Read) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, read := range b.reads {
		if read.Raw != nil || read.Err != nil {
			continue
		}
		if next, waits := l.pending[b.keys[i]]; waits {
			delete(l.pending, b.keys[i])
			l.unqueueLocked(b.keys[i])
			taken = append(taken, next)
		}
	}
	return taken
}

func (l *lane) unqueueLocked(key string) {
	for i, k := range l.order {
		if k == key {
			l.order = append(l.order[:i:i], l.order[i+1:]...)
			return
		}
	}
}

func (l *lane) replace(s *sender) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.replaced.Swap(true) || l.sender != s {
		return
	}
	l.sender = nil
	if len(l.order) > 0 && !l.closed {
		l.startLocked()
	}
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, read := range l.pending {
		read.Err = ErrClosed
		close(read.done)
	}
	clear(l.pending)
	l.order = nil
}

// fetch sends one GET by itself, and several as a pipeline, which a cluster or ring client splits by node.
func (r *Reader) fetch(ctx context.Context, keys []string) []*redis.StringCmd {
	cmds := make([]*redis.StringCmd, len(keys))
	if len(keys) == 1 {
		cmds[0] = redis.NewStringCmd(ctx, "get", keys[0])
		_ = r.rdb.Process(ctx, cmds[0]) // the command keeps its error
		return cmds
	}
	pipe := r.rdb.Pipeline()
	for i, key := range keys {
		cmds[i] = redis.NewStringCmd(ctx, "get", key)
		_ = pipe.Process(ctx, cmds[i]) // only queues
	}
	_, _ = pipe.Exec(ctx) // each command keeps its error
	return cmds
}

// answer tells absence from failure. A key that holds no string holds nothing of ours: it is there, with no content.
func answer(cmd *redis.StringCmd) ([]byte, error) {
	raw, err := cmd.Bytes()
	switch {
	case err == nil && raw == nil:
		return []byte{}, nil
	case errors.Is(err, redis.Nil):
		return nil, nil
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return []byte{}, nil
	}
	return raw, err
}
