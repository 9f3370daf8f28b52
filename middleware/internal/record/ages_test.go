package record

import (
	"math"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestSumsOfDurationsSaturate(t *testing.T) {
	const most, least = time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	for _, c := range []struct{ a, b, want time.Duration }{
		{1, 2, 3}, {1, -2, -1}, {most, 1, most}, {most, most, most}, {most, -most, 0},
		{least, 0, -most}, {least, least, -most}, {-most, -1, -most}, {least, most, -1},
	} {
		expect.Equal(t, c.a.String()+" and "+c.b.String(), Plus(c.a, c.b), c.want)
		expect.Equal(t, c.b.String()+" and "+c.a.String(), Plus(c.b, c.a), c.want)
	}
}

// Records of earlier versions have lifetimes that overflowed.
func TestARecordWithExtremeTermsIsStale(t *testing.T) {
	now := time.Unix(1782864000, 0)
	for _, terms := range []Terms{
		{Lifetime: math.MinInt64, Age: time.Second},
		{Lifetime: math.MinInt64, Age: math.MaxInt64, SWR: Longest, SIE: Longest},
		{Lifetime: math.MaxInt64, Age: math.MaxInt64, SWR: Longest, SIE: Longest},
	} {
		for _, received := range []time.Time{now, now.AddDate(-5000, 0, 0)} {
			rec := Record{Kind: Stored, Status: 200, Received: received, Terms: terms}
			expect.Equal(t, "fresh", rec.Fresh(now) > 0, false)
			expect.Equal(t, "servable", rec.Servable(now), false)
			expect.Equal(t, "stands in", rec.MayStandIn(Longest, now), false)
		}
	}
}
