package hold_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/leaks"
)

var errLost, errRevoked = errors.New("lost"), errors.New("revoked")

func options(onLost func()) hold.Options {
	return hold.Options{TTL: 10 * time.Second, Holder: holder{onLost}}
}

type holder struct{ onLost func() }

func (holder) Renewal() script.Call { return script.Call{} }

func (holder) Cause(reply int) error {
	if reply == -1 {
		return errRevoked
	}
	return errLost
}

func (h holder) Lost() {
	if h.onLost != nil {
		h.onLost()
	}
}

// bubble runs a test on virtual time, with a hold whose request was sent a second ago.
func bubble(t *testing.T, limit time.Duration, test func(t *testing.T, h *hold.Hold, lost *int)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := 0
		tm := options(func() { lost++ })
		tm.Max = limit
		h := new(hold.Hold)
		h.Begin(t.Context(), tm, time.Now().Add(-time.Second), 10*time.Second)
		defer func() { _ = h.End() }()
		test(t, h, &lost)
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func expect(t *testing.T, h *hold.Hold, want error) {
	t.Helper()
	if got := context.Cause(h.Context()); !errors.Is(got, want) {
		t.Errorf("the context ended with %v, want %v", got, want)
	}
}

func TestTrustEndsALeaseAfterTheRequestWasSent(t *testing.T) {
	bubble(t, 0, func(t *testing.T, h *hold.Hold, lost *int) {
		pass(9*time.Second - 1)
		expect(t, h, nil)
		pass(1)
		expect(t, h, errLost)
		if err := h.Answered(time.Now(), 1); !errors.Is(err, errLost) || *lost != 1 {
			t.Error("what is lost came back, or was lost twice")
		}
	})
}

func TestARenewalIsTrustedFromWhenItWasSent(t *testing.T) {
	bubble(t, 0, func(t *testing.T, h *hold.Hold, _ *int) {
		sent := time.Now()
		pass(2 * time.Second)
		if err := h.Answered(sent, 1); err != nil || !h.TrustedUntil().Equal(sent.Add(10*time.Second)) {
			t.Errorf("trusted until %v, %v", h.TrustedUntil(), err)
		}
		if err := h.Answered(sent.Add(-5*time.Second), 1); err != nil || !h.TrustedUntil().Equal(sent.Add(10*time.Second)) {
			t.Errorf("an older reply changed it to %v, %v", h.TrustedUntil(), err)
		}
		pass(8*time.Second - 1)
		expect(t, h, nil)
		pass(1)
		expect(t, h, errLost)
	})
}

func TestANoEndsTheTrustAtOnce(t *testing.T) {
	bubble(t, 0, func(t *testing.T, h *hold.Hold, lost *int) {
		if err := h.Answered(time.Now(), -1); !errors.Is(err, errRevoked) || *lost != 1 {
			t.Errorf("%v; lost %d times", err, *lost)
		}
		expect(t, h, errRevoked)
	})
}

func TestAHoldEndsAfterItsMaximum(t *testing.T) {
	bubble(t, 12*time.Second, func(t *testing.T, h *hold.Hold, _ *int) {
		pass(5 * time.Second)
		_ = h.Answered(time.Now(), 1)
		pass(7*time.Second - 1)
		expect(t, h, nil)
		pass(1)
		expect(t, h, errLost)
	})
}

func TestAnEndedHoldIsNotLost(t *testing.T) {
	bubble(t, 0, func(t *testing.T, h *hold.Hold, lost *int) {
		if first, second := h.End(), h.End(); first != nil || second == nil {
			t.Errorf("End does not know whether it was the first: %v, %v", first, second)
		}
		h.Lose(errLost)
		pass(time.Minute)
		expect(t, h, context.Canceled)
		if *lost != 0 {
			t.Error("lost")
		}
	})
}

// The timer of a process that was stopped may be late: a call finds the lease over all the same.
func TestErrComparesTheClock(t *testing.T) {
	t.Parallel()
	for range 1000 {
		h := new(hold.Hold)
		h.Begin(context.Background(), options(nil), time.Now().Add(-time.Minute), 10*time.Second)
		if h.Context().Err() == nil {
			t.Fatal("a lease that is over counts as alive")
		}
		_ = h.End()
		h = new(hold.Hold)
		h.Begin(context.Background(), options(nil), time.Now().Add(-time.Minute), 10*time.Second)
		if !errors.Is(h.End(), errLost) {
			t.Fatal("a lease that was over counts as held to the end")
		}
	}
}

func TestMain(m *testing.M) { leaks.Main(m) }
