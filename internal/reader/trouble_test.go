package reader

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

const hasty = 100 * time.Millisecond

// stubborn makes a client that waits for a reply as long as the connection stands.
func stubborn(o *redis.Options) { o.MaxRetries, o.ReadTimeout, o.WriteTimeout = -1, -1, -1 }

func (a *asking) expectTimeout() {
	a.t.Helper()
	if read := a.answer(); !errors.Is(read.Err, ErrTimeout) || read.Raw != nil {
		a.t.Errorf("read %q, %v; want ErrTimeout", read.Raw, read.Err)
	}
}

// newStubbornStage cuts the connections at the end, as otherwise Close would wait for the replies that never come.
func newStubbornStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, hasty, stubborn)
	t.Cleanup(s.proxy.Cut)
	return s
}

func TestBatchWithoutAReplyFailsAndItsLaneGoesOn(t *testing.T) {
	t.Parallel()
	s := newStubbornStage(t)
	k := keys(t, s.Reader, 3)
	for _, key := range k {
		s.set(t, key, "value of "+key)
	}
	lost := s.hold(redistest.SwallowReply)
	first := ask(t, s.Reader, k[0])
	receive(t, lost.Hit())
	var later []*asking
	for _, key := range k {
		later = append(later, ask(t, s.Reader, key))
	}
	first.expectTimeout()
	for i, a := range later {
		a.expect("value of " + k[i])
	}
	ask(t, s.Reader, k[0]).expect("value of " + k[0])
	s.sent.expect(t, k[:1], k, k[:1])
}

func TestSeveralBatchesInARowMayHangInALane(t *testing.T) {
	t.Parallel()
	s := newStubbornStage(t)
	key := keys(t, s.Reader, 1)[0]
	s.set(t, key, "v")
	s.proxy.On(redistest.Command("get"), redistest.SwallowReply).Times(3)
	for range 3 {
		ask(t, s.Reader, key).expectTimeout()
	}
	ask(t, s.Reader, key).expect("v")
}

func TestReaderWorksAgainAfterABlackHole(t *testing.T) {
	t.Parallel()
	s := newStubbornStage(t)
	k := keys(t, s.Reader, 2)
	s.set(t, k[0], "v")
	ask(t, s.Reader, k[0]).expect("v")
	s.proxy.BlackHole(true)
	ask(t, s.Reader, k[0]).expectTimeout()
	ask(t, s.Reader, k[1]).expectTimeout()
	s.proxy.Cut() // or the black hole would keep what was lost in it
	s.proxy.BlackHole(false)
	redistest.Await(t, "an answer", func() bool { return ask(t, s.Reader, k[0]).answer().Err == nil })
	ask(t, s.Reader, k[0]).expect("v")
	ask(t, s.Reader, k[1]).expectAbsence()
}

func TestReplyThatComesLateAnswersNobody(t *testing.T) {
	t.Parallel()
	s := newStubbornStage(t)
	key := keys(t, s.Reader, 1)[0]
	s.set(t, key, "old")
	late := s.hold(redistest.HoldReply)
	first := ask(t, s.Reader, key)
	receive(t, late.Hit())
	first.expectTimeout()
	s.set(t, key, "new")
	second := ask(t, s.Reader, key)
	second.expect("new")

	held := s.proxy.On(redistest.Command("get"), redistest.HoldReply).Times(1)
	third := ask(t, s.Reader, key)
	receive(t, held.Hit())
	late.Release() // while another batch of the lane is in flight
	held.Release()
	s.Close() // waits for both senders
	first.expectTimeout()
	second.expect("new")
	if read := third.answer(); read.Err == nil && string(read.Raw) != "new" {
		t.Errorf("third: %q", read.Raw)
	}
}

func TestAbsenceThatComesLateAnswersNobody(t *testing.T) {
	t.Parallel()
	s := newStubbornStage(t)
	k := keys(t, s.Reader, 2)
	late := s.hold(redistest.HoldReply)
	first := ask(t, s.Reader, k[0]) // absent
	receive(t, late.Hit())
	first.expectTimeout()
	s.set(t, k[0], "new")

	next := s.proxy.On(redistest.Command("get"), redistest.Hold).Times(1)
	busy := ask(t, s.Reader, k[1])
	receive(t, next.Hit())
	pending := ask(t, s.Reader, k[0])
	late.Release()
	busy.expectTimeout()
	pending.expect("new")
}

func TestCloseWaitsForWhatIsInFlightAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keys(t, s.Reader, 2)
	s.set(t, k[0], "v")
	held := s.hold(redistest.Hold)
	inFlight := ask(t, s.Reader, k[0])
	receive(t, held.Hit())
	pending := []*asking{ask(t, s.Reader, k[0]), ask(t, s.Reader, k[1]), ask(t, s.Reader, k[1])}

	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
	}()
	for _, a := range pending {
		receive(t, a.done)
		if a.read != nil || !errors.Is(a.err, ErrClosed) {
			t.Errorf("Get = %v, %v; want ErrClosed", a.read, a.err)
		}
	}
	select {
	case <-closed:
		t.Error("Close has returned while a batch was in flight")
	default:
	}
	if read, err := s.Get(t.Context(), k[0]); read != nil || !errors.Is(err, ErrClosed) {
		t.Errorf("Get after Close = %v, %v; want ErrClosed", read, err)
	}
	held.Release()
	receive(t, closed)
	inFlight.expect("v")
	s.Close()
	s.sent.expect(t, k[:1])
}

func TestServerThatIsDownIsAnErrorOfTheRead(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient, func(o *redis.Options) { o.MaxRetries = -1 })
	s.proxy.Refuse(true)
	if read := ask(t, s.Reader, t.Name()).answer(); read.Err == nil || read.Raw != nil {
		t.Errorf("read %q, %v; want an error", read.Raw, read.Err)
	}
}
