package distance

import (
	"io"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/testing/alarm"
)

// limit is how much may be under way on a stretch. A writer waits for room, as it does for a full socket.
const limit = 4 << 20

// Stretch is one direction of a connection: what is written to it comes out later by the delay, in order, chunk by chunk.
// One goroutine writes and ends it.
type Stretch struct {
	to    io.Writer
	alarm *alarm.Alarm
	done  chan struct{} // closed when nothing more comes out

	mu      sync.Mutex
	changed sync.Cond
	delay   time.Duration
	way     []chunk // what is under way, the oldest first
	bytes   int     // of way
	spare   [][]byte
	ended   bool
	err     error
}

type chunk struct {
	data []byte
	due  time.Time
}

// NewStretch makes a stretch that ends with End.
func NewStretch(to io.Writer, delay time.Duration) (*Stretch, error) {
	a, err := alarm.New()
	if err != nil {
		return nil, err
	}
	s := &Stretch{to: to, alarm: a, done: make(chan struct{}), delay: delay}
	s.changed.L = &s.mu
	go s.carry() // owner: Stretch; stop: End, Stop or an error of to; joined by End
	return s, nil
}

// Delay is for what is written from now on; what is under way stays ahead of it.
func (s *Stretch) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Write returns when there is room for p. An error comes from an earlier write to the other end.
func (s *Stretch) Write(p []byte) (int, error) {
	now := time.Now()
	s.mu.Lock()
	if s.delay <= 0 && len(s.way) == 0 && s.err == nil {
		s.mu.Unlock()
		return s.to.Write(p) // nobody else does: what is under way comes from here
	}
	defer s.mu.Unlock()
	for s.bytes > 0 && s.bytes+len(p) > limit && s.err == nil {
		s.changed.Wait()
	}
	if s.err != nil {
		return 0, s.err
	}
	var buffer []byte
	if n := len(s.spare); n > 0 {
		buffer, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	s.way = append(s.way, chunk{append(buffer[:0], p...), now.Add(s.delay)})
	s.bytes += len(p)
	s.changed.Broadcast()
	return len(p), nil
}

// End returns when all that was written has come out, or cannot any more. Nothing may be written after it.
func (s *Stretch) End() error {
	s.mu.Lock()
	s.ended = true
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Stop drops what is under way. It does not wait; End does.
func (s *Stretch) Stop() { s.fail(io.ErrClosedPipe) }

func (s *Stretch) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	_ = s.alarm.Close() // it may be closed
	s.changed.Broadcast()
}

func (s *Stretch) carry() {
	defer close(s.done)
	defer func() { _ = s.alarm.Close() }() // it may be closed
	for {
		c, ok := s.oldest()
		if !ok {
			return
		}
		err := s.alarm.Sleep(c.due)
		if err == nil {
			_, err = s.to.Write(c.data)
		}
		if err != nil {
			s.fail(err)
			return
		}
		s.out(c)
	}
}

// oldest waits for what is to come out next.
func (s *Stretch) oldest() (c chunk, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.way) == 0 && !s.ended && s.err == nil {
		s.changed.Wait()
	}
	if len(s.way) == 0 || s.err != nil {
		return chunk{}, false
	}
	return s.way[0], true
}

// out forgets what has come out, and keeps its memory for what comes next.
func (s *Stretch) out(c chunk) {
	const spares, large = 64, 64 << 10
	s.mu.Lock()
	defer s.mu.Unlock()
	s.way = s.way[:copy(s.way, s.way[1:])]
	s.bytes -= len(c.data)
	if len(s.spare) < spares && cap(c.data) <= large {
		s.spare = append(s.spare, c.data)
	}
	s.changed.Broadcast()
}
