package hold_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
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

func ended(t *testing.T, h *hold.Hold, want error) {
	t.Helper()
	expect.ErrorIs(t, context.Cause(h.Context()), want)
}

func TestTrustEndsALeaseAfterTheRequestWasSent(t *testing.T) {
	bubble(t, 0, func(t *testing.T, h *hold.Hold, lost *int) {
		pass(9*time.Second - 1)
		ended(t, h, nil)
		pass(1)
		ended(t, h, errLost)
		expect.ErrorIs(t, h.Answered(time.Now(), 1), errLost)
		expect.Equal(t, "times that it was lost", *lost, 1)
	})
}

func TestARenewalIsTrustedFromWhenItWasSent(t *testing.T) {
	bubble(t, 0, func(t *testing.T, h *hold.Hold, _ *int) {
		sent := time.Now()
		pass(2 * time.Second)
		expect.ErrorIs(t, h.Answered(sent, 1))
		expect.Equal(t, "trusted for ten seconds", h.TrustedUntil().Equal(sent.Add(10*time.Second)), true)
		expect.ErrorIs(t, h.Answered(sent.Add(-5*time.Second), 1))
		expect.Equal(t, "trusted as long, after an older reply", h.TrustedUntil().Equal(sent.Add(10*time.Second)), true)
		pass(8*time.Second - 1)
		ended(t, h, nil)
		pass(1)
		ended(t, h, errLost)
	})
}

func TestANoEndsTheTrustAtOnce(t *testing.T) {
	bubble(t, 0, func(t *testing.T, h *hold.Hold, lost *int) {
		expect.ErrorIs(t, h.Answered(time.Now(), -1), errRevoked)
		expect.Equal(t, "times that it was lost", *lost, 1)
		ended(t, h, errRevoked)
	})
}

func TestAHoldEndsAfterItsMaximum(t *testing.T) {
	bubble(t, 12*time.Second, func(t *testing.T, h *hold.Hold, _ *int) {
		pass(5 * time.Second)
		_ = h.Answered(time.Now(), 1)
		pass(7*time.Second - 1)
		ended(t, h, nil)
		pass(1)
		ended(t, h, errLost)
	})
}

func TestAnEndedHoldIsNotLost(t *testing.T) {
	bubble(t, 0, func(t *testing.T, h *hold.Hold, lost *int) {
		if first, second := h.End(), h.End(); first != nil || second == nil {
			t.Errorf("End does not know whether it was the first: %v, %v", first, second)
		}
		h.Lose(errLost)
		pass(time.Minute)
		ended(t, h, context.Canceled)
		expect.Equal(t, "times that it was lost", *lost, 0)
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
