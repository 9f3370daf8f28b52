package send

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

const (
	firstPause   = 8 * time.Millisecond // before a call that failed is sent again, and twice as much each time
	longestPause = 256 * time.Millisecond
)

// Sender sends the scripts of locks, cas and segment through a Link of its own, which makes the client send nothing
// twice. All on one client share its breakers. While one is open, all calls fail at once with breaker.ErrOpen, except
// the one that probes; calls that release something go on in the background.
//
// A lock is asked for by callers who may leave at any time, and given up by callers who have left already. So there are
// two kinds of calls. Ask sends one as long as its caller waits. Release sends one until it is known to have run, or
// what it gives up has ended by itself. Releases go first. A call without a reply is not lost to Redis: it may still
// arrive. Its Trail remembers that, so that a caller that gives up can make Redis refuse it from then on.
type Sender struct {
	link *Link
	life *lifecycle.Life // of its owner, which counts callers
}

// NewSender returns a Sender. Its owner's life counts releases as tasks; when that ends, each is tried once more.
func NewSender(rdb script.Processor, timeout time.Duration, life *lifecycle.Life) *Sender {
	return &Sender{link: NewOnce(rdb, timeout), life: life}
}

// Close waits for what is in flight, after the end of the owner's life: when Redis hangs, for the client's own
// time-outs.
func (s *Sender) Close() { s.link.Close() }

// RoundTrip is how long a call for the key takes at present, as far as is known.
func (s *Sender) RoundTrip(key string) time.Duration { return s.link.RoundTrip(key) }

// Refused reports whether calls for the key fail at once.
func (s *Sender) Refused(key string) bool { return s.breaker(key).IsOpen() }

func (s *Sender) breaker(key string) *breaker.Breaker { return s.link.breakers.Of(key) }

func (s *Sender) lane(key string) *lane { return s.link.calls[s.link.breakers.Part(key)] }

// Ask runs the call while its caller waits. If ctx ends, it returns the cause. The trail, which may be nil, notes what
// may still be under way. After a broken connection Ask asks again, while the time-out is not over.
func (s *Sender) Ask(ctx context.Context, call script.Call, trail *Trail) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, context.Cause(ctx)
	}
	return s.ask(ctx, Call{Script: &call, Trail: trail, Rank: Ordinary})
}

func (s *Sender) ask(ctx context.Context, c Call) (Reply, error) {
	began := time.Now()
	for attempts := 0; ; attempts++ {
		reply, err := s.lane(c.Script.Keys[0]).call(ctx, c)
		more := Again(err) || c.Rank == EndsWork && said(err) && !settled(err)
		if more && c.Rank == EndsWork && s.Refused(c.Script.Keys[0]) {
			return reply, s.breaker(c.Script.Keys[0]).Refusal() // nobody waits for Redis while it does not answer; the rest goes on in the background
		}
		if !more || time.Since(began) > s.link.timeout ||
			!s.life.Sleep(ctx, min(firstPause<<min(attempts, 10), longestPause)) {
			return reply, err
		}
	}
}

// Acknowledged runs the call until that many replicas have what it wrote. While the breaker is open, it fails at once.
func (s *Sender) Acknowledged(ctx context.Context, call script.Call, replicas int) (Reply, error) {
	if s.Refused(call.Keys[0]) {
		return Reply{}, s.breaker(call.Keys[0]).Refusal()
	}
	reply := s.link.RunApart(ctx, []*script.Call{&call}, replicas)[0]
	return reply, reply.Err()
}

// AskOnce sends the call once: with any error but an answer of Redis' it may have run, or may yet.
func (s *Sender) AskOnce(ctx context.Context, call script.Call) (Reply, error) {
	return s.lane(call.Keys[0]).call(ctx, Call{Script: &call, Rank: Ordinary, Single: true})
}

// Leave releases what an id may have taken, in the background: once none of its calls is in flight, if any was sent.
// Only what is counted in the life may call it.
func (s *Sender) Leave(trail *Trail, release func(lost bool) script.Call, worth time.Duration) {
	if !s.life.Enter() {
		return // cannot be: the caller is counted
	}
	trail.Leave(func(sent, lost bool) {
		if sent {
			s.release(release(lost), worth)
		}
		s.life.Leave()
	})
}

// Release runs a call that gives something up until it is known to have run, or need not be, as Giving has it. It
// returns once Redis has let the time-out pass, or an attempt has failed while the breaker is open; then the rest is
// done in the background.
func (s *Sender) Release(call script.Call, worth time.Duration) (reply Reply, err error) {
	if err = s.breaker(call.Keys[0]).Refusal(); !s.Refused(call.Keys[0]) {
		reply, err = s.ask(context.Background(), Call{Script: &call, Rank: EndsWork})
	}
	if !settled(err) {
		s.release(call, worth)
	}
	return reply, err
}

// release runs such a call in the background. Only what is counted in the life may call it.
func (s *Sender) release(call script.Call, worth time.Duration) {
	giving := Giving{Worth: worth}
	attempt := func() bool {
		_, err := s.lane(call.Keys[0]).call(context.Background(), Call{Script: &call, Rank: EndsWork})
		return giving.Over(err)
	}
	s.life.Go(func() { // owner: the Sender's; stop: as Until; joined by its life
		if !attempt() {
			s.life.Until(firstPause, longestPause, attempt)
		}
	})
}
