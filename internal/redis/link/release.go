package link

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// release is a call that is sent until it is known to have run.
type release struct {
	call  script.Call
	until time.Time // when it is not worth sending any more
	last  bool      // it is not sent again; belongs to the goroutine that sends it
	reply Reply     // when done is closed
	why   error     // Redis' own word, why it is not known to have run; guarded by the mutex of its resender
	done  chan struct{}
}

// resender sends the releases of a part of the keyspace again that have failed.
type resender struct {
	mu       sync.Mutex
	failed   []*release
	failures int // since Redis answered, in a row
}

// start begins to send a release, as a task of the owner's life. Only what that counts may call it.
func (s *Sender) start(call script.Call, worth time.Duration) *release {
	r := &release{call: call, until: time.Now().Add(worth), done: make(chan struct{})}
	if !s.life.Enter() { // cannot be: the caller is counted
		r.finish(failed(ErrClosed))
		return r
	}
	s.send(r)
	return r
}

func (s *Sender) send(r *release) {
	l := s.lane(r.call.Keys[0])
	c := &queuedCall{
		Call: Call{Script: &r.call, Rank: EndsWork}, lane: l, ctx: context.Background(), waited: true,
		then: func(reply Reply, err error) { s.resolve(r, reply, err) },
	}
	if err := l.enqueue(c); err != nil {
		s.resolve(r, Reply{}, err)
	}
}

// resolve ends a release that was sent, or has it sent again if it is not known to have run.
func (s *Sender) resolve(r *release, reply Reply, err error) {
	if reply.Cmd == nil {
		reply = failed(err)
	}
	part := &s.resends[s.link.breakers.Part(r.call.Keys[0])]
	part.mu.Lock()
	if said(err) {
		part.failures = 0
	}
	again := !settled(err) && !errors.Is(err, ErrClosed) && !r.last && time.Now().Before(r.until)
	if again {
		if said(err) {
			r.why = err
		}
		part.failed = append(part.failed, r)
		if len(part.failed) == 1 {
			s.life.Go(func() { s.resend(part) }) // owner: the Sender's; stop: longestPause; joined by its life
		}
	}
	part.mu.Unlock()
	if !again {
		r.finish(reply)
		s.life.Leave()
	}
}

// overdue is what a caller hears that does not wait any longer.
func (s *Sender) overdue(r *release) error {
	part := &s.resends[s.link.breakers.Part(r.call.Keys[0])]
	part.mu.Lock()
	defer part.mu.Unlock()
	if r.why != nil {
		return r.why
	}
	return noAnswer(s.link.timeout)
}

func (r *release) finish(reply Reply) {
	r.reply = reply
	close(r.done)
}

// resend sends the releases that have failed again, after a while. When the life of the owner ends, that is once more at once.
func (s *Sender) resend(part *resender) {
	part.mu.Lock()
	part.failures++
	attempts := part.failures
	part.mu.Unlock()
	more := s.pause(context.Background(), attempts)
	part.mu.Lock()
	failed := part.failed
	part.failed = nil
	part.mu.Unlock()
	for _, r := range failed {
		r.last = !more
		s.send(r)
	}
}
