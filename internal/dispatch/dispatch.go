// Package dispatch sends the scripts of locks to Redis.
//
// A lock is asked for by callers who may leave at any time, and given up by callers who have left already. So there are two
// kinds of requests:
//
//   - One is asked for as long as its caller waits. What nobody waits for any more, and was not written yet, is never sent.
//   - One that gives something up is sent again and again until it is known to have run, or what it gives up has ended by
//     itself. It goes ahead of those that are asked for.
//
// While Redis is quick and few requests are under way, a caller sends its own (direct.go). Otherwise requests wait for one of
// a few lanes, and each lane sends what has gathered in one pipeline. So a thousand callers cost a few connections and
// goroutines. RedisTimeout runs from the writing; a pipeline that takes longer gives its lane to the next. On a cluster each
// part of the keyspace has lanes of its own, so a node that hangs holds up its own keys.
//
// A request is written once. One without a reply is not lost to Redis: it may still arrive. Its Trail remembers that, so
// that a caller that gives up can make Redis refuse it from then on.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/gather"
	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/script"
)

const (
	firstPause   = 8 * time.Millisecond // before a request that failed is sent again, and twice as much each time
	longestPause = 256 * time.Millisecond

	maxUnderWay = 4   // pipelines and requests of callers, in each part
	maxBatch    = 128 // requests in a pipeline
	minBatch    = 4   // likewise, when Redis is busy
	clusterCut  = 6   // parts of a cluster, as in package health

	longQueue = 2 * time.Millisecond // the time of a queue at Redis that is too long
)

// Client is what a Dispatcher needs of a Redis client.
type Client interface {
	script.Processor
	script.Pipeliner
}

// Dispatcher sends scripts to one Redis client.
type Dispatcher struct {
	alone   script.Processor // both send nothing twice
	piped   script.Pipeliner
	quick   *quick // nil: callers cannot send by themselves
	timeout time.Duration
	life    *lifecycle.Life // of its owner; whoever calls is counted there
	parts   []*part
}

// New returns a Dispatcher. Its goroutines are tasks of its owner's life; when that ends, each release is tried once more.
func New(rdb Client, timeout time.Duration, life *lifecycle.Life) *Dispatcher {
	d := &Dispatcher{timeout: timeout, life: life}
	if c, ok := rdb.(*redis.Client); ok {
		rdb, d.quick = c.WithTimeout(impatient(c.Options().ReadTimeout, timeout)), newQuick(c, timeout)
	}
	d.alone, d.piped = script.Once(rdb), script.OncePipeliner(rdb)
	n := 1
	if _, ok := rdb.(*redis.ClusterClient); ok {
		n = clusterCut
	}
	for range n {
		d.parts = append(d.parts, &part{Dispatcher: d})
	}
	return d
}

// impatient is how long a pipeline may hold up a connection: not much longer than its lane, whatever the client bears.
func impatient(client, timeout time.Duration) time.Duration {
	if client > 0 {
		return min(client, 2*timeout)
	}
	return 2 * timeout
}

func (d *Dispatcher) part(key string) *part {
	if len(d.parts) == 1 {
		return d.parts[0]
	}
	return d.parts[keys.Slot(key)*len(d.parts)/keys.Slots]
}

// RoundTrip is how long a request for the key takes at present, as far as is known.
func (d *Dispatcher) RoundTrip(key string) time.Duration {
	return d.part(key).roundTrip()
}

// Reply is what Redis says.
type Reply struct {
	*redis.Cmd
	Sent time.Time // before it was asked
}

// Ask runs the call while its caller waits: until ctx ends, whose cause it returns then. What is left of it is noted in the
// trail. After a broken connection it asks again, while RedisTimeout is not over.
func (d *Dispatcher) Ask(ctx context.Context, call script.Call, trail *Trail) (Reply, error) {
	p, began := d.part(call.Keys[0]), time.Now()
	for attempts := 0; ; attempts++ {
		reply, err := p.ask(ctx, &call, trail)
		if err == nil || !again(err) || time.Since(began) > d.timeout || !d.pause(ctx, attempts) {
			return reply, err
		}
	}
}

// ask runs the call once.
func (p *part) ask(ctx context.Context, call *script.Call, trail *Trail) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, context.Cause(ctx)
	}
	if reply, ok := p.direct(ctx, call, trail, false); ok {
		return reply, reply.Err()
	}
	r := &request{call: call, trail: trail, done: make(chan struct{})}
	r.leaves, _ = ctx.Deadline()
	p.enter(r)
	select {
	case <-r.done:
		return r.reply, r.reply.Err()
	case <-ctx.Done():
		p.leave(r)
		return Reply{}, context.Cause(ctx)
	}
}

// Release runs a call that gives something up until it is known to have run, or so much time has passed that it need not be.
// It returns after RedisTimeout at the latest; then the rest is done in the background.
func (d *Dispatcher) Release(call script.Call, worth time.Duration) (Reply, error) {
	p, began := d.part(call.Keys[0]), time.Now()
	if reply, ok := p.direct(context.Background(), &call, nil, true); ok {
		return reply, reply.Err()
	}
	r := &request{call: &call, done: make(chan struct{}), until: began.Add(worth)}
	p.enter(r)
	if !within(d.timeout-time.Since(began), r.done) {
		return Reply{}, d.late()
	}
	return r.reply, r.reply.Err()
}

// within reports whether something is done within the timeout, or when reprieved.
func within(timeout time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return reprieved(timeout, done)
	}
}

// reprieved reports whether something is done a little after its time-out, when the process is so busy that it may have been
// done and had no time to say so.
func reprieved(timeout time.Duration, done <-chan struct{}) bool {
	for range gather.Reprieves {
		if !gather.Starved() {
			break
		}
		select {
		case <-done:
			return true
		case <-time.After(timeout / gather.Reprieves):
		}
	}
	return false
}

// ReleaseLater is a Release that nobody waits for. Only what is counted in the Life may call it.
func (d *Dispatcher) ReleaseLater(call script.Call, worth time.Duration) {
	d.part(call.Keys[0]).enter(&request{call: &call, done: make(chan struct{}), until: time.Now().Add(worth)})
}

func (d *Dispatcher) late() error {
	return fmt.Errorf("no answer within %v: %w", d.timeout, context.DeadlineExceeded)
}

// noReply is the reply to a request that has none in time.
func (d *Dispatcher) noReply() Reply { return failed(d.late()) }

// notSent is the reply to a request of an id that asks for nothing any more.
func (d *Dispatcher) notSent() Reply { return failed(context.Canceled) }

func failed(err error) Reply {
	cmd := redis.NewCmd(context.Background())
	cmd.SetErr(err)
	return Reply{Cmd: cmd}
}

// pause waits a little before another attempt, and reports whether there may be one.
func (d *Dispatcher) pause(ctx context.Context, attempts int) bool {
	timer := time.NewTimer(min(firstPause<<min(attempts, 10), longestPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-d.life.Ending.Done():
	}
	return false
}

// answered reports whether an error, or none, is Redis' answer.
func answered(err error) bool {
	if err == nil {
		return true
	}
	_, said := errors.AsType[redis.Error](err)
	return said
}

// known reports whether a request with this error is known to have run, or to be refused for good.
func known(err error) bool { return err == nil || answered(err) && !passing(err) }

// written reports whether a request with this error may have been sent.
func written(err error) bool {
	if err == nil {
		return true
	}
	if op, is := errors.AsType[*net.OpError](err); is && op.Op == "dial" {
		return false
	}
	return !errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrClosed)
}

// again reports whether a request with this error is worth asking again soon. One without any answer in time is not.
func again(err error) bool {
	return !known(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// passing reports whether Redis says that it cannot answer now.
func passing(err error) bool {
	for _, prefix := range []string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "BUSY "} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}
