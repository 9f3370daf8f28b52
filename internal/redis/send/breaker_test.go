package send

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// openBreaker opens the link's breaker.
func openBreaker(t *testing.T, l *Link) {
	t.Helper()
	for range 100 {
		if l.breakers.Breaker(0).Record(io.EOF); l.breakers.Breaker(0).IsOpen() {
			return
		}
	}
	t.Fatal("the breaker does not open")
}

func (a asking) expectRefusal() {
	a.t.Helper()
	if read := a.answer(); !errors.Is(read.Err, breaker.ErrOpen) {
		a.t.Errorf("read %q, %v; want ErrOpen", read.Raw, read.Err)
	}
}

func TestWhatIsQueuedFailsAtOnceWhenTheBreakerOpens(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient, func(o *redis.Options) { o.MaxRetries = -1 })
	lostRead, lostCall := s.hold("get", redistest.Hold), s.hold("evalsha", redistest.Hold)
	read, call := ask(t, s.Link, "k"), do(t, s.Link, echoed("k", "v"))
	receive(t, lostRead.Hit())
	receive(t, lostCall.Hit())
	queuedRead, queuedCall := ask(t, s.Link, "k2"), do(t, s.Link, echoed("k", "w"))
	ends := echoed("k", "ends")
	ends.Rank = EndsWork
	urgent := do(t, s.Link, ends)
	for range 4 {
		s.breakers.Breaker(0).Record(io.EOF)
	}
	s.proxy.Cut() // the fifth failure
	queuedRead.expectRefusal()
	queuedCall.expectError(breaker.ErrOpen)
	urgent.expect("ends")
	receive(t, call.done)
	if call.err == nil || read.answer().Err == nil {
		t.Error("what was cut has an answer")
	}
	for range 10 {
		ask(t, s.Link, "k").answer()
	}
}

func TestCallThatEndsWorkIsTriedWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	openBreaker(t, s.Link)
	for _, rank := range []Rank{EndsWork, HoldsSlot, Ordinary} {
		c := echoed("k", "v")
		c.Rank = rank
		_, err := s.Do(t.Context(), "k", c)
		if s.breakers.Breaker(0).IsOpen() && errors.Is(err, breaker.ErrOpen) != (rank != EndsWork) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

func TestLinkRecoversWhenRedisDoes(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient, func(o *redis.Options) { o.MaxRetries = -1 })
	s.proxy.Refuse(true)
	redistest.Await(t, "the breaker opens", func() bool {
		return errors.Is(ask(t, s.Link, "k").answer().Err, breaker.ErrOpen)
	})
	s.proxy.Refuse(false)
	redistest.Await(t, "an answer", func() bool { return ask(t, s.Link, "k").answer().Err == nil })
	do(t, s.Link, echoed("k", "v")).expect("v")
}

func TestNobodyWaitsForTheProbeOfABreaker(t *testing.T) {
	var sent atomic.Int64
	var hang chan struct{}
	slowly(t, func(ctx context.Context) {
		sent.Add(1)
		select {
		case <-ctx.Done():
		case <-hang:
		}
	}, func(t *testing.T, l *Link) {
		hang = make(chan struct{}) // on the clock of the test
		l.pin(shortest)
		openBreaker(t, l)
		time.Sleep(600 * time.Millisecond) // longer than the longest pause of a breaker
		synctest.Wait()                    // the probe is in flight
		start := time.Now()
		for range 10 {
			if read, err := l.Get(t.Context(), "k"); err != nil || !errors.Is(read.Err, breaker.ErrOpen) {
				t.Errorf("read %+v, %v", read, err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("the refusals took %v", took)
		}
		expect.Equal(t, "requests, of which one is the probe", sent.Load(), 1)
		close(hang)
		synctest.Wait()
		if read, err := l.Get(t.Context(), "k"); err != nil || read.Err != nil {
			t.Errorf("after the probe: %+v, %v", read, err)
		}
	})
}

func TestHookForTheBreakerMayUseTheLink(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	rdb.AddHook(new(recorder))
	var l *Link
	told := make(chan bool, 100)
	h := breaker.New(rdb, t.Name(), time.Second, func(open bool) {
		expect.ErrorIs(t, expect.Err(l.Get(t.Context(), "k")))
		if _, err := l.Do(t.Context(), "k", echoed("k", "v")); err == nil && open {
			t.Error("the breaker is open, and a call has an answer")
		}
		told <- open
	})
	l = New(rdb, patient, h)
	t.Cleanup(l.Close)
	l.pin(shortest)
	p.Refuse(true)
	for range 5 {
		_, _ = l.Get(t.Context(), "k") // fails, or is refused
	}
	if open := <-told; !open {
		t.Error("told that it closed")
	}
	p.Refuse(false)
	redistest.Await(t, "an answer", func() bool { return ask(t, l, "k").answer().Err == nil })
	if open := <-told; open {
		t.Error("told that it opened")
	}
}

func TestReadsThatOpenTheBreakerFailTheCallsThatAreQueued(t *testing.T) {
	t.Parallel()
	// The call in flight gives its credit back after a quarter of this. The others must be answered for another reason.
	s := newStage(t, time.Hour, func(o *redis.Options) { o.MaxRetries = -1 })
	held := s.hold("evalsha", redistest.Hold)
	inFlight := do(t, s.Link, echoed("k", "v"))
	receive(t, held.Hit())
	queued := do(t, s.Link, echoed("k", "w"))
	s.proxy.On(redistest.Command("get"), redistest.ReplyError("LOADING not yet"))
	for range 5 {
		ask(t, s.Link, "k").answer()
	}
	queued.expectError(breaker.ErrOpen)
	held.Release()
	inFlight.expect("v")
}

func TestWhatTheClientIsRefusedAfterPausesDoesNotSayHowSlowRedisIs(t *testing.T) {
	t.Parallel()
	for refusal, measures := range map[string]bool{
		"READONLY You can't write against a read only replica.":  false,
		"NOREPLICAS Not enough good replicas to write.":          false,
		"WRONGPASS invalid username-password pair":               false,
		"NOAUTH Authentication required.":                        false,
		"OOM command not allowed when used memory > 'maxmemory'": true,
	} {
		for _, command := range []string{"get", "evalsha"} {
			expect.Beside(t, refusal[:strings.Index(refusal, " ")]+" to "+command, func(t *testing.T) {
				s := newStage(t, patient)
				answered := s.breakers.Breaker(0).Answered()
				rule := s.proxy.On(redistest.Command(command), redistest.ReplyError(refusal))
				said := func() bool {
					select {
					case <-answered:
						return true
					default:
						return false
					}
				}
				one := func() (err error) {
					if command == "get" {
						return ask(t, s.Link, "k").answer().Err
					}
					_, err = s.Do(t.Context(), "k", echoed("k", "v"))
					return err
				}
				expect.Fails(t, one())
				expect.Equal(t, "it was measured", said(), measures)
				rule.Remove()
				_ = one() // a refusal of another kind may come once more
				redistest.Await(t, "an answer is measured", func() bool { return one() == nil && said() })
			})
		}
	}
}
