package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// samples is how many PINGs the latency is of, at most: somebody waits for the answer.
const (
	samples  = 100
	fewest   = 3
	patience = 2 * time.Second // after which these do
)

// Round trips that no Redis nearby takes, and with which what a Guard or a lock needs is not tried within its time.
const (
	far    = 20 * time.Millisecond
	tooFar = 500 * time.Millisecond
)

// measure measures round trips, and how far the server's clock is ahead of this machine's.
func measure(ctx context.Context, rdb *redis.Client) (latency roundTrips, offset time.Duration, err error) {
	var took roundTrips
	for start := time.Now(); len(took) < samples && (len(took) < fewest || time.Since(start) < patience); {
		began := time.Now()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return nil, 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	began := time.Now()
	server, err := rdb.Time(ctx).Result()
	if err != nil {
		return nil, 0, err
	}
	return took, server.Sub(began.Add(time.Since(began) / 2)), nil
}

// rounded is a duration for people: three digits or so.
func rounded(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}

// roundTrips are how long they took, the shortest first.
type roundTrips []time.Duration

func (r roundTrips) median() time.Duration { return r[len(r)/2] }

// judge says whether Redis is nearby, by them.
func (r roundTrips) judge() (result, detail string) {
	if len(r) == 0 {
		return ok, ""
	}
	at := func(percent int) time.Duration { return rounded(r[len(r)*percent/100]) }
	detail = fmt.Sprintf("p50 %v, p90 %v, p99 %v", at(50), at(90), at(99))
	if r.median() > far {
		return warning, fmt.Sprintf("%s: a hit takes no less than %v, and a miss several times that; from nearby it is about 1ms", detail, at(50))
	}
	return ok, detail
}
