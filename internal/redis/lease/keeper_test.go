package lease_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestLeaseIsRenewedEveryThirdOfIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fake, k *lease.Keeper) {
		k.Keep(renewal("a", 3*time.Second, mustKeep(t)))
		pass(4 * time.Second)
		expectTimes(t, f, 1, 2, 3, 4)
	})
}

func TestShorterLeaseThatComesLaterIsRenewedInTime(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fake, k *lease.Keeper) {
		k.Keep(renewal("long", time.Hour, mustKeep(t)))
		pass(time.Second)
		k.Keep(renewal("short", 6*time.Second, mustKeep(t)))
		pass(4 * time.Second)
		expectTimes(t, f, 3, 5)
		expectSizes(t, f, 1, 1)
	})
}

func TestLeasesDueWithinATenthAreRenewedTogether(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fake, k *lease.Keeper) {
		for range 3 {
			k.Keep(renewal("a", 30*time.Second, mustKeep(t)))
			pass(time.Second)
		}
		pass(time.Second) // the fourth is due 4 s after the first: too late to go with it
		k.Keep(renewal("b", 30*time.Second, mustKeep(t)))
		pass(10 * time.Second)
		expectTimes(t, f, 10, 14)
		expectSizes(t, f, 3, 1)
	})
}

func TestManyLeasesAreRenewedOnceEachInPipelinesOfBoundedSize(t *testing.T) {
	bubble(t, func(ctx context.Context, _ string) (int64, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		const leases = 1300
		for i := range leases {
			k.Keep(renewal(strconv.Itoa(i), time.Minute, mustKeep(t))) // a tenth is longer than the timeout
		}
		pass(20 * time.Second) // no reply has come yet
		expectSizes(t, f, 512, 512, 276)
		seen := make(map[string]bool)
		for _, p := range f.sent {
			for _, key := range p.keys {
				seen[key] = true
			}
		}
		expect.Equal(t, "leases that were renewed", len(seen), leases)
	})
}

// The last of them wait to be sent for most of the time-out, and have their replies when it is over.
func TestRenewalsThatWaitToBeSentAreNotSentAgain(t *testing.T) {
	bubble(t, func(context.Context, string) (int64, error) {
		time.Sleep(1700 * time.Microsecond) // 870 ms for a pipeline of 512, of which 32 are sent at a time
		return 1, nil
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		const leases = 20_000
		for i := range leases {
			k.Keep(renewal(strconv.Itoa(i), time.Minute, mustKeep(t)))
		}
		pass(22 * time.Second)
		sent := 0
		for _, n := range f.sizes() {
			sent += n
		}
		expect.Equal(t, "renewals that were sent", sent, leases)
	})
}

func TestRenewalWithoutAReplyYetIsNotSentAgainWithOthers(t *testing.T) {
	bubble(t, func(ctx context.Context, key string) (int64, error) {
		if key == "slow" {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return 1, nil
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		k.Keep(renewal("slow", time.Minute, mustKeep(t)))
		pass(19500 * time.Millisecond)
		k.Keep(renewal("quick", 3*time.Second, mustKeep(t)))
		pass(1100 * time.Millisecond) // the first one may be replied to until 21 s
		expectTimes(t, f, 20, 20.5)
		expectSizes(t, f, 1, 1)
	})
}

func TestErrorIsTriedAgainAndSaysNothingAboutTheLease(t *testing.T) {
	failures := 3
	bubble(t, func(context.Context, string) (int64, error) {
		if failures--; failures >= 0 {
			return 0, errDown
		}
		return 1, nil
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		k.Keep(renewal("a", 3*time.Second, mustKeep(t)))
		pass(2900 * time.Millisecond)
		expectTimes(t, f, 1, 1.3, 1.6, 1.9, 2.9)
	})
}

func TestZeroSaysOnceThatTheLeaseIsLostAndEndsTheRenewals(t *testing.T) {
	bubble(t, func(_ context.Context, key string) (int64, error) {
		if key == "lost" {
			return 0, nil
		}
		return 1, nil
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		lost := 0
		var drop func()
		drop = keep(k, renewal("lost", 3*time.Second, func() {
			lost++
			drop() // the owner may let go at once
		}))
		k.Keep(renewal("kept", 3*time.Second, mustKeep(t)))
		pass(10 * time.Second)
		drop()
		expect.Equal(t, "times that Lost was called", lost, 1)
		expectSizes(t, f, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	})
}

func TestDropEndsTheRenewals(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fake, k *lease.Keeper) {
		drop := keep(k, renewal("a", 3*time.Second, mustKeep(t)))
		pass(2 * time.Second)
		drop()
		drop()
		pass(time.Hour)
		expectTimes(t, f, 1, 2)
	})
}

func TestLeaseThatWasDroppedIsNotLost(t *testing.T) {
	bubble(t, func(ctx context.Context, _ string) (int64, error) {
		<-ctx.Done()
		return 0, nil // the owner has released it meanwhile
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		drop := keep(k, renewal("a", 3*time.Second, mustKeep(t)))
		pass(time.Second)
		drop()
		pass(time.Minute)
		expectTimes(t, f, 1)
	})
}

func TestKeptTellsWhenTheRenewalWasSentAndDueThatItWillBe(t *testing.T) {
	bubble(t, func(context.Context, string) (int64, error) {
		time.Sleep(200 * time.Millisecond) // the reply takes a while
		return 1, nil
	}, func(t *testing.T, f *fake, k *lease.Keeper) {
		var due, kept []time.Duration
		r := renewal("a", 3*time.Second, mustKeep(t))
		r.First = time.Now().Add(500 * time.Millisecond)
		l := r.Lease.(*told)
		l.due = func() { due = append(due, time.Since(f.began)) }
		l.kept = func(sent time.Time) { kept = append(kept, sent.Sub(f.began)) }
		k.Keep(r)
		pass(2 * time.Second)
		want := seconds(0.5, 1.7)
		if !slices.Equal(due, want) || !slices.Equal(kept, want) {
			t.Errorf("due at %v, kept at %v, want %v", due, kept, want)
		}
	})
}
