package rwlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The first request is held up on its way. The call asks again, gets the lock and gives it up. Only then does the first request arrive.
func TestARequestThatArrivesAfterItsCallHasUnlockedGetsNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []take{(*Locker).Lock, (*Locker).RLock} {
		f, k, p := behind(t, Config{TTL: time.Hour}, redistest.AsksAgain)
		late := p.On(acquireCommand, redistest.Hold).Times(1)
		l := must(t, k, how, "a")
		expect.Equal(t, "requests held up", late.Count(), 1)
		unlock(t, l)
		before := shared.Commands()["evalsha"] + shared.Commands()["eval"]
		late.Release()
		redistest.Await(t, "the late request", func() bool { return shared.Commands()["evalsha"]+shared.Commands()["eval"] > before })
		redistest.Await(t, "nobody holds", func() bool { return f.info("a").Token == "" && f.info("a").Readers == 0 })
		unlock(t, must(t, f.lockers[0], (*Locker).TryLock, "a"))
	}
}

// The first request of a TryLock is held up on its way. It asks again, and others have the lock. They give it up, and only then the first
// request arrives.
func TestARequestThatArrivesAfterItsTryLockWasRefusedGetsNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []take{(*Locker).TryLock, (*Locker).TryRLock} {
		f, k, p := behind(t, Config{TTL: time.Hour}, redistest.AsksAgain)
		other := must(t, f.lockers[0], (*Locker).Lock, "a")
		late := p.On(acquireCommand, redistest.Hold).Times(1)
		_, err := how(k, t.Context(), "a")
		expect.ErrorIs(t, err, ErrNotAcquired)
		expect.Equal(t, "requests held up", late.Count(), 1)
		redistest.Await(t, "Redis is to refuse the request", func() bool {
			return f.redis.HExists(t.Context(), callerOf(other).Keys[0], "gone").Val()
		})
		unlock(t, other)
		before := shared.Commands()["evalsha"] + shared.Commands()["eval"]
		late.Release()
		redistest.Await(t, "the late request", func() bool { return shared.Commands()["evalsha"]+shared.Commands()["eval"] > before })
		unlock(t, must(t, f.lockers[0], (*Locker).TryLock, "a"))
	}
}

func TestALeaseThatIsOverBeforeItsAnswerComesIsAnError(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	far := f.join(redistest.StartFar(t, shared.Addr(), 160*time.Millisecond).Client(t), Config{TTL: 100 * time.Millisecond, FixedLease: true})
	for _, how := range []take{(*Locker).Lock, (*Locker).RLock, (*Locker).TryLock, (*Locker).TryRLock} {
		if _, err := how(far, t.Context(), "a"); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("got %v", err)
		}
		redistest.Await(t, "nobody holds", func() bool { return f.info("a").Token == "" && f.info("a").Readers == 0 })
	}
}

func TestUnlockOfALockWhoseKeyIsGoneIsNoErrorOfTheScript(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{}).listening()
	l := must(t, f.lockers[0], (*Locker).Lock, "a")
	w := wait(t, f.lockers[0], (*Locker).RLock, "a")
	f.awaitWaiting("a", 0, 1)
	f.redis.Del(t.Context(), callerOf(l).Keys[0])
	if err := l.Unlock(t.Context()); err != nil && !errors.Is(err, ErrLeaseLost) {
		t.Error(err)
	}
	unlock(t, w.Got())
}

// The writer in the queue has crashed, and the readers hold on: one that waits to read goes on when the writer counts as dead.
func TestAReaderBehindADeadWriterAsksWhenThatIsDead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	held := must(t, f.lockers[0], (*Locker).RLock, "a")
	dead, reader := newCaller(f.lockers[0], "a", rw.Writing), newCaller(f.lockers[0], "a", rw.Reading)
	ask := func(c caller, grace time.Duration) queue.Asked {
		call := c.Asking(c.Token, c.As, time.Minute, grace, time.Hour.Milliseconds(), "", 0)
		got, err := queue.ParseAsked(call.Run(t.Context(), f.redis))
		if err != nil || got.Status != "queued" {
			t.Fatalf("%+v, %v", got, err)
		}
		return got
	}
	const grace = queue.LongestGrace * 5 / 6 // longer than a busy machine holds up the test
	ask(dead, grace)
	got := ask(reader, queue.LongestGrace)
	if got.Left > grace {
		t.Errorf("it is worth asking in %v", got.Left)
	}
	if ms := reply(t, f, reader.Beating(reader.Token, got.Ticket, queue.LongestGrace)); ms < 1 || ms > grace.Milliseconds() {
		t.Errorf("after a heartbeat, in %d ms", ms)
	}
	reply(t, f, dead.Releasing(dead.Token, 0, false))
	reply(t, f, reader.Releasing(reader.Token, 0, false))
	unlock(t, held)
}

func TestANilLeaseSaysSo(t *testing.T) {
	t.Parallel()
	var l *Lease
	for what, err := range map[string]error{
		"Downgrade": l.Downgrade(t.Context()), "TryUpgrade": l.TryUpgrade(t.Context()),
	} {
		expect.Equal(t, what, errors.Is(err, lifecycle.ErrNilLease), true)
	}
	expect.Equal(t, "nothing", l.Fence() == 0 && !l.Writes(), true)
}

// A message for readers does not name them: it has the ticket up to which all queued readers are granted. Redis removes a reader from the
// queue when a grant would be of no use to it any more, a little before its context ends.
func TestAReaderThatWaitsNoLongerInRedisTakesNoGrantOfOthers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	far := f.join(redistest.StartFar(t, shared.Addr(), 100*time.Millisecond).Client(t), Config{})
	f.listening()
	for range 20 { // so that it knows how far it is
		unlock(t, must(t, far, (*Locker).RLock, "other"))
	}
	writer := must(t, f.lockers[0], (*Locker).Lock, "k")
	ctx, cancel := context.WithTimeout(t.Context(), 2*brisk)
	defer cancel()
	patient := wait(t, far, (*Locker).RLock, "k")
	got := make(chan error, 1)
	go func() { // owner: the test; stop: ctx; joined below
		_, err := far.RLock(ctx, "k")
		got <- err
	}()
	f.awaitWaiting("k", 0, 2)
	f.awaitWaiting("k", 0, 1)
	unlock(t, writer)
	lease := patient.Got()
	if err := <-got; !errors.Is(err, ErrNotAcquired) {
		t.Errorf("it got %v, with %d readers in Redis", err, f.info("k").Readers)
	}
	unlock(t, lease)
}
