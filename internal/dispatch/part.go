package dispatch

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/gather"
	"github.com/cacheguard/go/internal/script"
)

// request is one that waits for a lane, or is under way.
type request struct {
	call   *script.Call
	trail  *Trail
	since  time.Time     // when it was entered
	leaves time.Time     // its caller, at the latest; zero: it does not say
	until  time.Time     // a release: when it is not worth sending any more; zero: it is asked for
	place  *list.Element // in the queue; nil: it is under way; guarded by the part's mutex
	last   bool          // a release that is not sent again
	reply  Reply         // when done is closed
	done   chan struct{}
}

func (r *request) releases() bool { return !r.until.IsZero() }

func (r *request) finish(reply Reply) {
	r.reply = reply
	close(r.done)
}

// part is a part of the keyspace, with requests of its own.
type part struct {
	*Dispatcher

	mu       sync.Mutex
	releases list.List // of *request, as asks
	asks     list.List
	underWay int           // pipelines, and requests of callers
	trip     time.Duration // smoothed
	best     time.Duration // the shortest, slowly forgotten
	window   int           // requests in a pipeline at present
	answered time.Time     // when Redis answered last
	failed   []*request    // releases that are to be sent again
	failures int           // since then, in a row
}

// enter puts a request into the queue.
func (p *part) enter(r *request) {
	r.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.releases() {
		r.place = p.releases.PushBack(r)
	} else {
		r.place = p.asks.PushBack(r)
	}
	p.fillLocked()
}

// leave takes a request of a caller that has left out of the queue.
func (p *part) leave(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.place != nil {
		p.asks.Remove(r.place)
		r.place = nil
	}
}

// fillLocked starts a lane if there is something to send and a place to do so.
func (p *part) fillLocked() {
	if p.underWay < maxUnderWay && p.releases.Len()+p.asks.Len() > 0 {
		p.underWay++
		p.life.Go(p.lane) // owner: the Dispatcher's; stop: the queue is empty, RedisTimeout and the client's time-outs; joined by its life
	}
}

// lane sends what has gathered, until there is nothing left.
func (p *part) lane() {
	for {
		gather.WhileGrowing(p.waiting)
		b := p.take()
		if len(b) == 0 || !p.send(b) {
			return
		}
	}
}

func (p *part) waiting() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(p.releases.Len() + p.asks.Len())
}

// take takes the next requests for a pipeline, or gives the lane up. Those whose callers will have left before an answer comes
// stay where they are, unless there is nothing else to learn from how long that takes.
func (p *part) take() []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b []*request
	add := func(queue *list.List, e *list.Element) {
		r := queue.Remove(e).(*request)
		r.place = nil
		if !r.trail.begin() { // its caller, who may leave from here on, finds it so
			r.finish(p.notSent())
			return
		}
		b = append(b, r)
	}
	for len(b) < maxBatch && p.releases.Len() > 0 {
		add(&p.releases, p.releases.Front())
	}
	then := time.Now().Add(p.trip)
	for e := p.asks.Front(); e != nil && len(b) < p.limit(); {
		this := e
		e = e.Next()
		if leaves := this.Value.(*request).leaves; leaves.IsZero() || leaves.After(then) {
			add(&p.asks, this)
		}
	}
	for len(b) == 0 && p.underWay == 1 && p.asks.Len() > 0 {
		add(&p.asks, p.asks.Back())
	}
	if len(b) == 0 {
		p.underWay--
	}
	return b
}

// send sends a batch, and reports whether its lane may go on.
func (p *part) send(b []*request) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*p.timeout)
	defer cancel()
	sent, answered, given := time.Now(), make(chan struct{}), make(chan bool, 1)
	timer := time.AfterFunc(p.timeout, func() { given <- p.overdue(b, answered) })
	cmds := p.run(ctx, b)
	close(answered)
	if !timer.Stop() && <-given {
		return false // its requests are settled
	}
	p.took(time.Since(sent))
	for i, r := range b {
		p.settle(r, Reply{cmds[i], sent})
	}
	return true
}

// run runs the calls of a batch. A single one does so outside of a pipeline, for which go-redis has connections of their own:
// then there is one that callers can use.
func (p *part) run(ctx context.Context, b []*request) []*redis.Cmd {
	if len(b) == 1 {
		return []*redis.Cmd{b[0].call.Run(ctx, p.alone)}
	}
	calls := make([]*script.Call, len(b))
	for i, r := range b {
		calls[i] = r.call
	}
	return script.RunAll(ctx, p.piped, calls)
}

// overdue gives up a batch that takes too long: its lane goes to the next, and what has waited as long for nothing is given up
// with it. It reports whether it has.
func (p *part) overdue(b []*request, answered <-chan struct{}) bool {
	if reprieved(p.timeout, answered) {
		return false
	}
	p.took(p.timeout)
	p.mu.Lock()
	p.underWay--
	var hopeless []*request
	for time.Since(p.answered) > p.timeout && p.asks.Len() > 0 {
		r := p.asks.Front().Value.(*request)
		if time.Since(r.since) < p.timeout {
			break
		}
		p.asks.Remove(r.place)
		r.place = nil
		hopeless = append(hopeless, r)
	}
	p.fillLocked()
	p.mu.Unlock()
	for _, r := range b {
		p.settle(r, p.noReply())
	}
	for _, r := range hopeless {
		r.finish(p.noReply())
	}
	return true
}

// settle ends a request that was sent. A release that is not known to have run is sent again.
func (p *part) settle(r *request, reply Reply) {
	err := reply.Err()
	r.trail.end(err)
	p.mu.Lock()
	if answered(err) {
		p.answered, p.failures = time.Now(), 0
	}
	again := r.releases() && !known(err) && !r.last && time.Now().Before(r.until)
	if again {
		p.failed = append(p.failed, r)
		if len(p.failed) == 1 {
			p.life.Go(p.resend) // owner: the Dispatcher's; stop: longestPause; joined by its life
		}
	}
	p.mu.Unlock()
	if !again {
		r.finish(reply)
	}
}

// resend puts the releases that have failed into the queue again, after a while. When the Dispatcher's owner ends, that is once
// more at once.
func (p *part) resend() {
	p.mu.Lock()
	p.failures++
	attempts := p.failures
	p.mu.Unlock()
	more := p.pause(context.Background(), attempts)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.failed {
		r.last = !more
		r.place = p.releases.PushBack(r)
	}
	p.failed = nil
	p.fillLocked()
}

// took learns how long a round trip takes.
func (p *part) took(d time.Duration) {
	const longest = 100 * time.Millisecond // or a Redis that did not answer would look far away for long
	d = min(d, longest)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trip == 0 {
		p.trip, p.best = d, d
	}
	p.trip += (d - p.trip) / 8
	p.best = min(d, p.best+(d-p.best)/64)
	if d > 2*p.best+longQueue {
		p.window = max(p.window/2, minBatch)
	} else {
		p.window = min(p.window+minBatch, maxBatch)
	}
}

// limit is how many requests a pipeline may have. When round trips take longer than they could, a queue has formed at Redis;
// whoever waits does so better here, where leaving costs nothing.
func (p *part) limit() int { return max(p.window, minBatch) }

func (p *part) roundTrip() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trip
}
