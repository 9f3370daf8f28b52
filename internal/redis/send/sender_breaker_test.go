package send

import (
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

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
