package send

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var errOver = errors.New("over")

// senderStage is a stage with a Sender on its client.
func senderStage(t *testing.T, timeout time.Duration) (*stage, *Sender, *lifecycle.Life) {
	t.Helper()
	s, life := bareStage(t, patient), lifecycle.New()
	sender := NewSender(s.client, timeout, life)
	t.Cleanup(func() {
		life.Close(errOver, nil)
		sender.Close()
	})
	return s, sender, life
}

func word(w string) script.Call { return *echoed("k", w).Script }

func TestAReleaseWhoseReplyIsLostIsSentUntilItIsKnownToHaveRun(t *testing.T) {
	t.Parallel()
	s, sender, life := senderStage(t, patient)
	life.Begin()
	defer life.Done()
	lost := s.proxy.On(redistest.Command("evalsha"), redistest.DropReply).Times(3)
	reply, err := sender.Release(word("released"), time.Hour)
	if got, _ := reply.Text(); err != nil || got != "released" {
		t.Errorf("got %q, %v", got, err)
	}
	expect.Equal(t, "lost replies", lost.Count(), 3)
}

func TestAReleaseGoesOnInTheBackgroundAfterTheTimeoutAndCloseJoinsIt(t *testing.T) {
	t.Parallel()
	life, held := unanswered(t, time.Hour)
	if life.Quiet() {
		t.Error("nobody sends it any more")
	}
	held.Remove()
	redistest.Await(t, "the release", life.Quiet)
}

// unanswered is a release, worth so much, that Redis has let the time-out pass for.
func unanswered(t *testing.T, worth time.Duration) (*lifecycle.Life, *redistest.Rule) {
	t.Helper()
	s, sender, life := senderStage(t, 50*time.Millisecond)
	life.Begin()
	held := s.proxy.On(redistest.Command("evalsha"), redistest.Hold)
	_, err := sender.Release(word("released"), worth)
	expect.ErrorIs(t, err, context.DeadlineExceeded)
	life.Done()
	return life, held
}

// A call that it gives up may run as late as when Redis goes on, and has what it takes from then on.
func TestAReleaseIsSentUntilRedisAnswersHoweverLongThatTakes(t *testing.T) {
	t.Parallel()
	life, held := unanswered(t, time.Millisecond)
	redistest.Await(t, "it goes on, though what it gives up is worth nothing any more", func() bool { return held.Count() > 4 })
	held.Remove()
	redistest.Await(t, "the release", life.Quiet)
}

// answered is an error that Redis answered.
type answered string

func (a answered) Error() string { return string(a) }
func (answered) RedisError()     {}

func TestWhatIsGivenUpIsSentOnceMoreAfterAnAnswerThatFollowsSilence(t *testing.T) {
	t.Parallel()
	const busy = answered("BUSY Redis is busy")
	for name, test := range map[string]struct {
		worth time.Duration
		after []error
		want  []bool
	}{
		"it is answered":              {time.Hour, []error{nil}, []bool{true}},
		"silence, an answer, and one": {time.Nanosecond, []error{ErrTimeout, ErrTimeout, nil, nil}, []bool{false, false, false, true}},
		"silence again":               {time.Hour, []error{ErrTimeout, nil, ErrTimeout, nil, nil}, []bool{false, false, false, false, true}},
		"refused for a while":         {time.Hour, []error{busy, busy, nil}, []bool{false, false, true}},
		"refused until it is over":    {time.Nanosecond, []error{busy}, []bool{true}},
		"the Link is closed":          {time.Hour, []error{ErrTimeout, ErrClosed}, []bool{false, true}},
	} {
		g := Giving{Worth: test.worth}
		for i, err := range test.after {
			expect.Equal(t, fmt.Sprint(name, ", attempt ", i), g.Over(err), test.want[i])
		}
	}
}

func TestACallThatMayBeSentOnceIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s, sender, _ := senderStage(t, patient)
	lost := s.proxy.On(redistest.Command("evalsha"), redistest.DropReply)
	expect.Fails(t, expect.Err(sender.AskOnce(t.Context(), word("once"))))
	expect.Equal(t, "requests", lost.Count(), 1)
}

func TestWhatIsAskedAtOnceIsSentInOneRequestAndAnsweredInItsOrder(t *testing.T) {
	t.Parallel()
	s, sender, _ := senderStage(t, patient)
	rec := new(recorder)
	s.client.AddHook(rec)
	var all []script.Call
	for i := range maxCalls {
		all = append(all, word(fmt.Sprint(i)))
	}
	replies, errs := sender.AskTogether(t.Context(), all, make([]*Trail, len(all)))
	for i, reply := range replies {
		if got, _ := reply.Text(); got != fmt.Sprint(i) || errs[i] != nil {
			t.Errorf("reply %d is %q, %v", i, got, errs[i])
		}
	}
	expect.Equal(t, "requests", len(rec.all()), 1)
}

func TestTheHooksOfTheClientSeeAsksAndReleases(t *testing.T) {
	t.Parallel()
	s, sender, life := senderStage(t, patient)
	life.Begin()
	defer life.Done()
	rec := new(recorder)
	s.client.AddHook(rec)
	expect.Must(t, expect.Err(sender.Ask(t.Context(), word("asked"), nil)))
	expect.Must(t, expect.Err(sender.Release(word("released"), time.Hour)))
	expect.Equal(t, "requests", len(rec.all()), 2)
}

func TestATrailThatWasClosedLetsNothingBeSent(t *testing.T) {
	t.Parallel()
	s, sender, _ := senderStage(t, patient)
	var trail Trail
	if trail.Close() {
		t.Error("something was sent")
	}
	sent := s.proxy.On(redistest.Command("evalsha"), redistest.Hold)
	_, err := sender.Ask(t.Context(), word("late"), &trail)
	expect.ErrorIs(t, err, context.Canceled)
	expect.Equal(t, "requests", sent.Count(), 0)
}

// The release waits for the call under way, although its caller has left, and then gives up what the id has taken.
func TestLeaveWaitsForTheCallUnderWay(t *testing.T) {
	t.Parallel()
	s, sender, life := senderStage(t, patient)
	life.Begin()
	var trail Trail
	held := s.proxy.On(redistest.Command("evalsha"), redistest.HoldReply).Times(1)
	asked := begin(t, func(ctx context.Context) (Reply, error) { return sender.Ask(ctx, word("asked"), &trail) })
	receive(t, held.Hit())
	asked.giveUp()
	released := make(chan bool, 1)
	sender.Leave(&trail, func(lost bool) script.Call {
		released <- lost
		return word("released")
	}, time.Hour)
	life.Done()
	if len(released) > 0 || life.Quiet() {
		t.Error("it did not wait")
	}
	held.Release()
	if <-released {
		t.Error("the call counts as lost")
	}
	redistest.Await(t, "the release", life.Quiet)
}

func TestACallWhoseCallerWillHaveLeftIsSentOnlyWhenNothingElseIs(t *testing.T) {
	t.Parallel()
	now := time.Now()
	soon := &queuedCall{Call: *echoed("k", "soon"), waited: true, leaves: now.Add(time.Second)}
	later := &queuedCall{Call: *echoed("k", "later"), waited: true, leaves: now.Add(time.Hour)}
	never := &queuedCall{Call: *echoed("k", "never"), waited: true}
	q := &callQueue{most: maxCalls}
	for _, c := range []*queuedCall{soon, later, never} {
		q.add(c)
	}
	sent := q.take(false, time.Minute, true).(*calls)
	if len(sent.all) != 2 || sent.all[0] != later || sent.all[1] != never {
		t.Errorf("%d calls were sent", len(sent.all))
	}
	if p := q.take(false, time.Minute, false); p != nil {
		t.Error("it was sent beside others")
	}
	if last := q.take(false, time.Minute, true).(*calls); len(last.all) != 1 || last.all[0] != soon || !q.empty() {
		t.Error("it was not sent when nothing else was")
	}
}

func TestWhileTheBreakerIsOpenASenderSendsNothingButWhatItReleases(t *testing.T) {
	t.Parallel()
	const impatient = 20 * time.Millisecond
	s, sender, life := senderStage(t, impatient)
	other := NewSender(s.client, patient, lifecycle.New()) // on the same client, so the breaker is the same
	defer other.Close()
	held := s.proxy.On(redistest.Command("evalsha"), redistest.Hold)
	redistest.Await(t, "the breaker opens", func() bool {
		before := held.Count()
		_, err := sender.Ask(t.Context(), word("asked"), nil)
		return errors.Is(err, breaker.ErrOpen) && held.Count() == before
	})
	life.Begin()
	redistest.Await(t, "a release does not wait", func() bool {
		_, err := sender.Release(word("released"), time.Hour)
		return errors.Is(err, breaker.ErrOpen)
	})
	life.Done()
	if life.Quiet() {
		t.Error("nobody sends the release any more")
	}
	held.Remove()
	redistest.Await(t, "the release", life.Quiet)
	redistest.Await(t, "the breaker closes", func() bool {
		_, err := other.Ask(t.Context(), word("asked"), nil)
		return err == nil
	})
	expect.Equal(t, "it is open", sender.link.breakers.Breaker(0).IsOpen(), false)
}
