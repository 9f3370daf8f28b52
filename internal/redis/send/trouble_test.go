package send

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestParcelWithoutAReplyFailsAloneAndGivesItsCreditBack(t *testing.T) {
	t.Parallel()
	s := stubbornStage(t)
	k := keysOf(t, s.Link, 3)
	for _, key := range k {
		s.set(key, "value of "+key)
	}
	lost := s.hold("get", redistest.HoldReply)
	first := ask(t, s.Link, k[0])
	receive(t, lost.Hit())
	var later []asking
	for _, key := range k {
		later = append(later, ask(t, s.Link, key))
	}
	first.expectTimeout()
	for i, a := range later {
		a.expect("value of " + k[i])
	}
	ask(t, s.Link, k[0]).expect("value of " + k[0])
	s.sent.expect(t, k[:1], k, k[:1])
	lane := s.reads[0]
	redistest.Await(t, "the lane is at rest", func() bool {
		lane.mu.Lock()
		defer lane.mu.Unlock()
		return lane.credits == 0 && len(lane.flying) == 0 && !lane.gathering
	})
}

func TestSeveralParcelsInARowMayHangInALane(t *testing.T) {
	t.Parallel()
	s := stubbornStage(t)
	key := keysOf(t, s.Link, 1)[0]
	s.set(key, "v")
	s.proxy.On(redistest.Command("get"), redistest.HoldReply).Times(3)
	for range 3 {
		ask(t, s.Link, key).expectTimeout()
	}
	ask(t, s.Link, key).expect("v")
}

func TestLinkWorksAgainAfterABlackHole(t *testing.T) {
	t.Parallel()
	s := stubbornStage(t)
	k := keysOf(t, s.Link, 2)
	s.set(k[0], "v")
	ask(t, s.Link, k[0]).expect("v")
	s.proxy.BlackHole(true)
	ask(t, s.Link, k[0]).expectTimeout()
	ask(t, s.Link, k[1]).expectTimeout()
	s.proxy.Cut() // or the black hole would keep what was lost in it
	s.proxy.BlackHole(false)
	redistest.Await(t, "an answer", func() bool { return ask(t, s.Link, k[0]).answer().Err == nil })
	ask(t, s.Link, k[0]).expect("v")
	ask(t, s.Link, k[1]).expectAbsence()
}

func TestReplyThatComesLateAnswersNobody(t *testing.T) {
	t.Parallel()
	s := stubbornStage(t)
	key := keysOf(t, s.Link, 1)[0]
	s.set(key, "old")
	late := s.hold("get", redistest.HoldReply)
	first := ask(t, s.Link, key)
	receive(t, late.Hit())
	first.expectTimeout()
	s.set(key, "new")
	second := ask(t, s.Link, key)
	second.expect("new")

	held := s.hold("get", redistest.HoldReply)
	third := ask(t, s.Link, key)
	receive(t, held.Hit())
	late.Release() // while another parcel of the lane is in flight
	held.Release()
	s.Close() // waits for both
	first.expectTimeout()
	second.expect("new")
	if read := third.answer(); read.Err == nil && string(read.Raw) != "new" {
		t.Errorf("third: %q", read.Raw)
	}
}

func TestCloseWaitsForWhatIsInFlightAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	k := keysOf(t, s.Link, 2)
	s.set(k[0], "v")
	heldRead, heldCall := s.hold("get", redistest.Hold), s.hold("evalsha", redistest.Hold)
	read, call := ask(t, s.Link, k[0]), do(t, s.Link, echoed(k[0], "1"))
	receive(t, heldRead.Hit())
	receive(t, heldCall.Hit())
	queued := []asking{ask(t, s.Link, k[0]), ask(t, s.Link, k[1]), ask(t, s.Link, k[1])}
	ends := echoed(k[0], "2")
	ends.Rank = EndsWork
	calls := []doing{do(t, s.Link, ends), do(t, s.Link, echoed(k[0], "3"))}

	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
	}()
	for _, a := range queued {
		a.expectError(ErrClosed)
	}
	for _, d := range calls {
		d.expectError(ErrClosed)
	}
	select {
	case <-closed:
		t.Error("Close has returned while parcels were in flight")
	default:
	}
	if read, err := s.Get(t.Context(), k[0]); read != nil || !errors.Is(err, ErrClosed) {
		t.Errorf("Get after Close = %v, %v; want ErrClosed", read, err)
	}
	if cmd, err := s.Do(t.Context(), k[0], echoed(k[0], "4")); cmd != nil || !errors.Is(err, ErrClosed) {
		t.Errorf("Do after Close = %v, %v; want ErrClosed", cmd, err)
	}
	heldRead.Release()
	heldCall.Release()
	receive(t, closed)
	read.expect("v")
	call.expect("1")
	s.Close()
	if n := s.proxy.Commands(); n["get"] != 1 || n["evalsha"] != 1 {
		t.Errorf("sent %v", n)
	}
}

func TestCallsGoOnAfterStopReading(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.StopReading()
	expect.ErrorIs(t, expect.Err(s.Get(t.Context(), "k")), ErrClosed)
	do(t, s.Link, echoed("k", "v")).expect("v")
}

func TestServerThatIsDownIsAnErrorOfTheRequest(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient, func(o *redis.Options) { o.MaxRetries = -1 })
	s.proxy.Refuse(true)
	if read := ask(t, s.Link, "k").answer(); read.Err == nil || read.Raw != nil {
		t.Errorf("read %q, %v; want an error", read.Raw, read.Err)
	}
	call := do(t, s.Link, echoed("k", "v"))
	receive(t, call.done)
	expect.Fails(t, call.err)
}

// The client asks again for a tenth of a second, and callers wait behind one another, which is worth it in a failover alone.
func TestWhatIsRefusedForLongerThanAFailoverTakesIsSentOnce(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{"READONLY You can't write against a read only replica.", "NOREPLICAS Not enough good replicas to write."} {
		expect.Beside(t, refusal[:strings.Index(refusal, " ")], func(t *testing.T) {
			s := newStage(t, patient)
			rule := s.proxy.On(redistest.Command("evalsha"), redistest.ReplyError(refusal))
			sent := func(n int) int {
				before := s.proxy.Commands()["evalsha"]
				for _, d := range s.doAll(n, "k") {
					if receive(t, d.done); d.err == nil && d.got.Err() == nil {
						t.Error("it was not refused")
					}
				}
				return s.proxy.Commands()["evalsha"] - before
			}
			expect.Equal(t, "sent several times at first", sent(1) > 1, true)
			for _, n := range []int{1, 5} {
				redistest.Await(t, fmt.Sprint("sent once: ", n), func() bool { return sent(n) == n })
			}
			rule.Remove()
			do(t, s.Link, echoed("k", "v")).expect("v")
			for _, n := range []int{1, 5} { // the connection ends, with the failover
				rule = s.proxy.On(redistest.Command("evalsha"), redistest.ReplyError(refusal))
				redistest.Await(t, "it goes on", func() bool { sent(1); return s.calls[0].noWrites.goOn() })
				rule.Remove()
				cut := s.proxy.On(redistest.Command("evalsha"), redistest.CutBefore).Times(1)
				for i, d := range s.doAll(n, "k") {
					d.expect(strconv.Itoa(i))
				}
				cut.Remove()
			}
		})
	}
}
