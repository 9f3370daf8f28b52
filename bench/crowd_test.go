//go:build !race

package bench

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/internal/testing/distance"
)

// crowdAt is what a crowd does to cacheguard, with Redis a round trip away, in a time that stands still while anybody works: how many are answered
// does not depend on the machine.
func crowdAt(t *testing.T, roundTrip time.Duration, g scenario.GiveUp) (was *scenario.GaveUp) {
	t.Helper()
	g.Bubble = true
	synctest.Test(t, func(t *testing.T) {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true)
		road := distance.Road{RoundTrip: roundTrip}
		var err error
		was, err = g.Run(t.Context(), &redis.Options{
			DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				far, err := server.Dial()
				return road.Connect(far), err
			},
		}, roundTrip, rivals.Caches[0])
		if err != nil {
			t.Error(err)
		}
		server.Close()
		road.Wait()
		time.Sleep(2 * time.Second) // until go-redis' goroutines have noticed
	})
	return was
}

// TestCrowdCountsStayNothing holds those who give up to costing nobody else anything: no error of a Redis that answers, no
// breaker, no loader for nobody, and a bystander who is not disturbed.
func TestCrowdCountsStayNothing(t *testing.T) {
	for _, roundTrip := range []time.Duration{4 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			t.Parallel()
			was := crowdAt(t, roundTrip, scenario.Impatient)
			if was.RedisErrors != 0 || was.Openings != 0 {
				t.Errorf("%d errors of a Redis that answers, which was left alone %d times", was.RedisErrors, was.Openings)
			}
			if was.ForNobody != 0 {
				t.Errorf("%d loads began for nobody", was.ForNobody)
			}
			if was.Otherwise != 0 || was.Hits == 0 {
				t.Errorf("the bystander had %d hits, and %d Gets that were none", was.Hits, was.Otherwise)
			}
			if was.Wasted != 0 {
				t.Errorf("%d callers whose load had returned in time were not answered", was.Wasted)
			}
		})
	}
}

// TestCrowdCountsOfWhatWasLoaded holds loaded values to going ahead of new acquires: their callers are answered, and no lease ends
// before its value is stored.
func TestCrowdCountsOfWhatWasLoaded(t *testing.T) {
	const roundTrip, least = 50 * time.Millisecond, 640 // of the 1,500 or so that 64 loads at once allow
	for name, g := range map[string]scenario.GiveUp{"one instance": scenario.Loaded, "two instances, short lease": scenario.Taken} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was := crowdAt(t, roundTrip, g)
			if was.Answered < least {
				t.Errorf("%d callers were answered, want %d", was.Answered, least)
			}
			if was.Wasted != 0 || was.Again != 0 {
				t.Errorf("%d callers whose load had returned in time were not answered, %d loads were of keys that had been loaded",
					was.Wasted, was.Again)
			}
			if was.RedisErrors != 0 || was.Openings != 0 || was.ForNobody != 0 {
				t.Errorf("%d errors, left alone %d times, %d loads for nobody", was.RedisErrors, was.Openings, was.ForNobody)
			}
		})
	}
}
