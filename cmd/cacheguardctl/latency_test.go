package main

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestARedisThatIsFarAwayIsAWarning(t *testing.T) {
	t.Parallel()
	of := func(d time.Duration) roundTrips {
		all := make(roundTrips, samples)
		for i := range all {
			all[i] = d
		}
		return all
	}
	for _, test := range []struct {
		took           time.Duration
		result, detail string
	}{
		{300 * time.Microsecond, ok, "p50 300µs, p90 300µs, p99 300µs"},
		{20 * time.Millisecond, ok, "p50 20ms, p90 20ms, p99 20ms"},
		{101 * time.Millisecond, warning, "p50 101ms, p90 101ms, p99 101ms: a hit takes no less than 101ms, and a miss several times that; from nearby it is about 1ms"},
	} {
		result, detail := of(test.took).judge()
		expect.Equal(t, "result", result, test.result)
		expect.Equal(t, "detail", detail, test.detail)
	}
}

func TestAClockThatIsWrongIsAWarning(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]string{
		0: "ok 0s ahead of this machine", 1234567: "ok 1ms ahead of this machine", -100 * time.Microsecond: "ok 0s ahead of this machine",
		-2 * time.Millisecond: "ok 2ms behind this machine", 2 * time.Hour: "warning 2h0m0s ahead of this machine",
		-time.Minute: "warning 1m0s behind this machine", -time.Minute + 100*time.Microsecond: "warning 1m0s behind this machine",
	} {
		result, detail := clock(ahead)
		expect.Equal(t, ahead.String(), result+" "+detail, want)
	}
}
