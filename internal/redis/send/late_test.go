package send

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// lateness notes what Late is told.
type lateness struct {
	mu    sync.Mutex
	told  []string // the replies; "" for none
	first chan struct{}
}

func (l *lateness) late(late Reply, err error) {
	reply := ""
	if err == nil {
		reply, _ = late.Text()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, reply)
	if len(l.told) == 1 {
		close(l.first)
	}
}

func (l *lateness) expect(t *testing.T, want ...string) {
	t.Helper()
	if len(want) > 0 {
		receive(t, l.first)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.told) != len(want) || len(want) == 1 && l.told[0] != want[0] {
		t.Errorf("Late was told %q, want %q", l.told, want)
	}
}

func observed(key, word string) (*Call, *lateness) {
	c, l := echoed(key, word), &lateness{first: make(chan struct{})}
	c.Late = l.late
	return c, l
}

// again begins a call that was sent before, without an answer.
func (s *stage) again(c *Call) doing {
	s.t.Helper()
	return doing{begin(s.t, func(ctx context.Context) (*redis.Cmd, error) {
		q := newCall(ctx, s.calls[0], *c)
		q.tried = true
		if err := s.calls[0].enqueue(q); err != nil {
			return nil, err
		}
		reply, err := q.wait()
		return reply.Cmd, err
	})}
}

func TestLateGetsTheReplyWhenTheCallerHasLeft(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} { // alone, in a pipeline
		s := newStage(t, patient)
		release := s.occupied("k")
		held := s.proxy.On(func(args []string) bool { return args[len(args)-1] == "late" }, redistest.HoldReply)
		c, late := observed("k", "late")
		leaves := do(t, s.Link, c)
		others := s.doAll(n-1, "k")
		release()
		receive(t, held.Hit())
		leaves.giveUp()
		late.expect(t)
		held.Release()
		late.expect(t, "late")
		expectEach(others)
		s.Close()
		late.expect(t, "late")
	}
}

func TestLateGetsTheReplyThatComesAfterTheTimeout(t *testing.T) {
	t.Parallel()
	s := stubbornStage(t)
	held := s.hold("evalsha", redistest.HoldReply)
	c, late := observed("k", "late")
	do(t, s.Link, c).expectError(ErrTimeout)
	late.expect(t)
	held.Release()
	late.expect(t, "late")
	s.Close()
	late.expect(t, "late")
}

func TestLateLearnsThatNoReplyEverCame(t *testing.T) {
	t.Parallel()
	s := stubbornStage(t)
	lost := s.hold("evalsha", redistest.HoldReply)
	c, late := observed("k", "late")
	leaves := do(t, s.Link, c)
	receive(t, lost.Hit())
	leaves.giveUp()
	s.proxy.Cut()
	late.expect(t, "")
}

func TestLateIsNotCalledForACallThatWasNotSent(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	release := s.occupied("k")
	c, leftLate := observed("k", "1")
	do(t, s.Link, c).giveUp()
	c, closedLate := observed("k", "2")
	refused := do(t, s.Link, c)
	s.calls[0].close()
	refused.expectError(ErrClosed)
	release()
	s.Close()
	leftLate.expect(t)
	closedLate.expect(t)
}

func TestLateIsNotCalledForACallThatWasAnswered(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	c, late := observed("k", "v")
	do(t, s.Link, c).expect("v")
	s.again(c).expect("v")
	s.Close()
	late.expect(t)
}

// A call that its caller sent itself, without an answer, may have run although it is not sent again.
func TestLateIsCalledOnceForACallThatIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*stage, doing){
		"left": func(_ *stage, d doing) { d.giveUp() },
		"left, and the link is closed": func(s *stage, d doing) {
			d.giveUp()
			s.calls[0].close()
		},
		"closed": func(s *stage, d doing) {
			s.calls[0].close()
			d.expectError(ErrClosed)
		},
		"the breaker opens": func(s *stage, d doing) {
			s.calls[0].drain(false, breaker.ErrOpen)
			d.expectError(breaker.ErrOpen)
		},
		"left after it was taken out": func(s *stage, d doing) { // and before it was failed
			lane := s.calls[0]
			lane.mu.Lock()
			refused := lane.queue.drain(false)
			lane.mu.Unlock()
			d.giveUp()
			for _, p := range refused {
				p.fail(breaker.ErrOpen)
			}
		},
	} {
		s := newStage(t, patient)
		release := s.occupied("k")
		c, late := observed("k", "v")
		end(s, s.again(c))
		release()
		s.Close()
		late.expect(t, "")
		if t.Failed() {
			t.Fatal(name)
		}
		if q := s.calls[0].queue.(*callQueue); !q.empty() {
			t.Errorf("%s: the queue has %d calls", name, q.n)
		}
	}
}

const lateAfter = 50 * time.Millisecond

func (l *Link) isHasty() { l.LateAfter = func(*breaker.Breaker) time.Duration { return lateAfter } }

// lateAt is after how long the read is told to be late; 0: it is answered before.
func lateAt(t *testing.T, r *Read) time.Duration {
	t.Helper()
	start := time.Now()
	late, err := r.WaitLate(t.Context())
	expect.Must(t, err)
	if !late {
		return 0
	}
	return time.Since(start)
}

func askNow(t *testing.T, l *Link, key string) *Read {
	t.Helper()
	read, err := l.Ask(t.Context(), key)
	expect.Must(t, err)
	return read
}

func TestReadIsLateAfterAWhileAndAnsweredAllTheSame(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(4 * lateAfter) }, func(t *testing.T, l *Link) {
		l.isHasty()
		start, read := time.Now(), askNow(t, l, "k")
		expect.Equal(t, "late after", lateAt(t, read), lateAfter)
		if err := read.Wait(t.Context()); err != nil || read.Err != nil {
			t.Errorf("read: %v, %v", err, read.Err)
		}
		expect.Equal(t, "answered after", time.Since(start), 4*lateAfter)
	})
}

func TestReadInTheQueueIsLateToo(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(4 * lateAfter) }, func(t *testing.T, l *Link) {
		l.isHasty()
		l.pin(shortest)
		askNow(t, l, "a")
		time.Sleep(lateAfter / 2)
		second := askNow(t, l, "b") // without a credit
		if after := lateAt(t, second); after < lateAfter || after > lateAfter*3/2 {
			t.Errorf("the second read is late after %v", after)
		}
	})
}

func TestReadThatIsAnsweredInTimeIsNotLate(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(lateAfter / 2) }, func(t *testing.T, l *Link) {
		l.isHasty()
		expect.Equal(t, "late after", lateAt(t, askNow(t, l, "k")), time.Duration(0))
	})
}

func TestReadIsNeverLateWithoutALimit(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(4 * lateAfter) }, func(t *testing.T, l *Link) {
		expect.Equal(t, "late after", lateAt(t, askNow(t, l, "k")), time.Duration(0))
	})
}

func TestReadTellsThatItHasBecomeLateAndThenThatItIsAnswered(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(4 * lateAfter) }, func(t *testing.T, l *Link) {
		l.isHasty()
		start, read := time.Now(), askNow(t, l, "k")
		for _, after := range []time.Duration{lateAfter, 4 * lateAfter} {
			expect.Equal(t, "answered", read.IsAnswered(), false)
			<-read.Answered()
			expect.Equal(t, "told after", time.Since(start), after)
		}
		expect.Equal(t, "answered in the end", read.IsAnswered(), true)
	})
}
