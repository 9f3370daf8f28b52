package send

import (
	"context"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The lanes of the others have one credit each, which is taken, and so has the lane of the calls themselves.
func TestWhatGoesApartWaitsForNothingElse(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	release := s.occupied("k")
	held := s.proxy.On(func(args []string) bool { return args[len(args)-1] == "apart" }, redistest.HoldReply)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			replies := s.RunApart(t.Context(), []*script.Call{echoed("k", "apart").Script}, 0)
			if got, err := replies[0].Text(); err != nil || got != "apart" {
				t.Errorf("got %q, %v", got, err)
			}
		})
		redistest.Await(t, "it is sent", func() bool { return held.Count() == i+1 })
	}
	held.Release()
	all.Wait()
	release()
}

func TestWhatGoesApartIsSentWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	held := s.proxy.On(redistest.Command("get"), redistest.Hold) // nor do its probes find out that Redis answers
	for range 5 {
		s.breakers.Breaker(0).Record(context.DeadlineExceeded)
	}
	expect.Equal(t, "it is open", s.breakers.Breaker(0).IsOpen(), true)
	_, err := s.Do(t.Context(), "k", echoed("k", "ordinary"))
	expect.ErrorIs(t, err, breaker.ErrOpen)
	replies := s.RunApart(t.Context(), []*script.Call{echoed("k", "a").Script, echoed("k", "b").Script}, 0)
	for i, want := range []string{"a", "b"} {
		if got, err := replies[i].Text(); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	held.Remove()
	held.Release()
}

func TestAClosedLinkRunsNothingApart(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.RunApart(t.Context(), []*script.Call{echoed("k", "a").Script}, 0)
	s.Close()
	for _, key := range []string{"k", "other"} {
		expect.ErrorIs(t, s.RunApart(t.Context(), []*script.Call{echoed(key, "a").Script}, 0)[0].Err(), ErrClosed)
	}
}
