package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestRenewalWithoutAReplyIsSentAgainAfterTheTimeout(t *testing.T) {
	var hung chan struct{}
	bubble(t, func(context.Context, string) (int64, error) {
		<-hung // whatever the context says, as with go-redis
		return 0, errDown
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		hung = make(chan struct{})
		k.Keep(renewal("a", 6*time.Second, mustKeep(t)))
		pass(4 * time.Second)
		expectTimes(t, f, 2, 3, 4)
		close(hung)
	})
}

func TestReplyThatNeverComesHoldsUpNoOtherLease(t *testing.T) {
	var hung chan struct{}
	bubble(t, func(_ context.Context, key string) (int64, error) {
		if key == "hangs" {
			<-hung
		}
		return 1, nil
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		hung = make(chan struct{})
		k.Keep(renewal("hangs", time.Hour, mustKeep(t)))
		pass(20 * time.Minute)
		k.Keep(renewal("on another node", 3*time.Second, mustKeep(t))) // which runs what it is sent
		pass(3 * time.Second)
		expect.Equal(t, "times that it was sent to be renewed", f.count("on another node"), 3)
		close(hung)
	})
}

func TestReleaseEndsWhatIsUnderWayAndWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		f := newFake(t, func(ctx context.Context, _ string) (int64, error) {
			<-ctx.Done()
			ended = true // read below without a lock: release must have waited
			return 0, ctx.Err()
		})
		k, release := lease.Open(f, time.Hour)
		k.Keep(renewal("a", 3*time.Second, mustKeep(t)))
		pass(time.Second)
		release()
		if !ended {
			t.Error("a renewal was under way when release returned")
		}
		pass(time.Hour)
		expectTimes(t, f, 1)
	})
}

func TestUsersOfOneClientHaveOneKeeperUntilTheLastOneLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, nil)
		a, releaseA := lease.Open(f, timeout)
		b, releaseB := lease.Open(f, timeout)
		expect.Equal(t, "the keeper of one client", a, b)
		a.Keep(renewal("a", 3*time.Second, mustKeep(t)))
		b.Keep(renewal("b", 3*time.Second, mustKeep(t)))
		pass(time.Second)
		releaseA()
		pass(time.Second)
		expectSizes(t, f, 2, 2)
		releaseB()
		pass(time.Hour)
		expectSizes(t, f, 2, 2)
	})
}

func TestKeeperThatKeepsNothingSendsNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fake, k *lease.Keeper) {
		keep(k, renewal("a", time.Minute, mustKeep(t)))()
		pass(time.Hour)
		expectTimes(t, f)
	})
}

func TestKeeperThatNeverStartedIsReleased(t *testing.T) {
	bubble(t, nil, func(*testing.T, *fake, *lease.Keeper) {})
}

func TestAReplyAfterTheTimeoutKeepsTheLeaseAsOfWhenItWasAskedFor(t *testing.T) {
	bubble(t, func(context.Context, string) (int64, error) {
		time.Sleep(timeout + timeout/2)
		return 1, nil
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		r := renewal("a", 6*time.Second, mustKeep(t))
		var kept []time.Duration
		r.Lease.(*told).kept = func(sent time.Time) { kept = append(kept, sent.Sub(f.began)) }
		k.Keep(r)
		pass(3600 * time.Millisecond)
		expectTimes(t, f, 2, 3)
		if len(kept) != 1 || kept[0] != 2*time.Second {
			t.Errorf("kept at %v, want 2 s", kept)
		}
	})
}

func TestALeaseIsRenewedWhileItsBreakerIsOpen(t *testing.T) {
	bubble(t, func(ctx context.Context, key string) (int64, error) {
		if key == "fails" {
			return 0, errDown
		}
		return 1, nil
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		k.Keep(renewal("fails", 3*time.Second, mustKeep(t))) // five failures in a row open it
		pass(4 * time.Second)
		expect.Equal(t, "times that it was sent to be renewed", f.count("fails"), 11)
	})
}

func TestAttemptsThatNobodyAnswersDoNotPileUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		f := newFake(t, func(context.Context, string) (int64, error) {
			<-hung
			return 1, nil
		})
		k, release := lease.Open(f, time.Hour)
		k.Keep(renewal("a", 3*time.Second, mustKeep(t)))
		pass(time.Minute)
		expectTimes(t, f, 1, 2, 3, 4)
		close(hung)
		release()
	})
}
