package bench

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const redisTimeout = 500 * time.Millisecond // the default, which the figures are compared with

// BenchmarkOutage takes Redis away under the traffic of BenchmarkSteady, for OUTAGE (default 2s). One iteration is one outage, from a
// second before it to three seconds after. A failed Get, or a load too many, fails the benchmark.
func BenchmarkOutage(b *testing.B) {
	b.Run("killed", func(b *testing.B) {
		benchmarkOutage(b, crowded, (*redistest.Server).Kill, (*redistest.Server).Restart)
	})
	b.Run("frozen", func(b *testing.B) {
		benchmarkOutage(b, roomy, (*redistest.Server).Pause, (*redistest.Server).Resume)
	})
}

// demand is how many keys there are, and how many of them may be loaded at once.
type demand struct{ keys, maxLoads int }

var (
	crowded = demand{keys: 100, maxLoads: 8}
	roomy   = demand{keys: 20, maxLoads: 64} // no load waits for another, so what a Get takes is the load's or Redis' doing
)

func benchmarkOutage(b *testing.B, d demand, takeAway, giveBack func(*redistest.Server)) {
	var all outageFigures
	for b.Loop() {
		o := newOutage(b, d)
		o.run(b, takeAway, giveBack)
		o.require(b)
		all.add(o)
	}
	all.report(b)
}

// outage is one time without Redis.
type outage struct {
	*traffic
	demand
	server      *redistest.Server
	begun, over time.Time
}

func newOutage(b *testing.B, d demand) *outage {
	b.Helper()
	server := redistest.Start(b)
	rdb := server.Client(b, func(o *redis.Options) { o.PoolSize = poolSize })
	cfg := cacheguard.Config{
		TTL: trafficTTL, StaleFor: trafficStale, MaxLoads: d.maxLoads, RedisTimeout: redisTimeout,
	}
	return &outage{traffic: newTraffic(b, rdb, "outage", d.keys, cfg), demand: d, server: server}
}

func (o *outage) run(b *testing.B, takeAway, giveBack func(*redistest.Server)) {
	b.Helper()
	const before, after = time.Second, 3 * time.Second
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { // owner: run; stop: ctx; joined below
		defer close(done)
		o.traffic.run(ctx)
	}()
	time.Sleep(before)
	o.begun = time.Now()
	takeAway(o.server)
	time.Sleep(time.Until(o.begun.Add(outageLength(b))))
	giveBack(o.server)
	o.over = time.Now()
	time.Sleep(after)
	cancel()
	<-done
}

func outageLength(b *testing.B) time.Duration {
	b.Helper()
	text := os.Getenv("OUTAGE")
	if text == "" {
		return 2 * time.Second
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		b.Fatal(err)
	}
	return length
}

func (o *outage) require(b *testing.B) {
	b.Helper()
	o.requireAnswers(b)
	if o.db.most > o.maxLoads {
		b.Fatalf("%d loads at once, MaxLoads is %d", o.db.most, o.maxLoads)
	}
	if o.firstHit() < 0 {
		b.Fatal("no hit after the outage")
	}
}

// firstHit is how long after the outage the first Get was answered by Redis; negative if none was.
func (o *outage) firstHit() time.Duration {
	first := time.Duration(-1)
	for _, v := range o.visits {
		late := v.ended.Sub(o.over)
		if late >= 0 && (v.outcome == cacheguard.Hit || v.outcome == cacheguard.Stale) && (first < 0 || late < first) {
			first = late
		}
	}
	return first
}

// during counts the Gets that were due in the outage.
func (o *outage) during(outcome cacheguard.Outcome) (n int) {
	for _, v := range o.visits {
		if v.outcome == outcome && v.due.After(o.begun) && v.due.Before(o.over) {
			n++
		}
	}
	return n
}

// outageFigures collects outages: medians of counts and times, but the worst of what has a limit.
type outageFigures struct {
	longestGet, longestLoad, longestWithout, firstHit, most float64
	during                                                  map[cacheguard.Outcome][]float64
}

var outcomes = []cacheguard.Outcome{cacheguard.Hit, cacheguard.Stale, cacheguard.Loaded, cacheguard.Shared, cacheguard.Bypassed}

func (f *outageFigures) add(o *outage) {
	due, _ := o.times()
	f.longestGet = max(f.longestGet, millis(slices.Max(due)))
	f.longestLoad = max(f.longestLoad, millis(o.db.longest()))
	for _, v := range o.visits {
		f.longestWithout = max(f.longestWithout, millis(o.db.without(v)))
	}
	f.firstHit = max(f.firstHit, millis(o.firstHit()))
	f.most = max(f.most, float64(o.db.most))
	if f.during == nil {
		f.during = make(map[cacheguard.Outcome][]float64)
	}
	for _, outcome := range outcomes {
		f.during[outcome] = append(f.during[outcome], float64(o.during(outcome)))
	}
}

func (f *outageFigures) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // the length of an iteration
	b.ReportMetric(f.longestGet, "longest-get-ms")
	b.ReportMetric(millis(redisTimeout), "redis-timeout-ms")
	b.ReportMetric(f.longestLoad, "longest-load-ms")
	b.ReportMetric(f.longestWithout, "longest-get-without-load-ms")
	b.ReportMetric(f.firstHit, "first-hit-ms")
	b.ReportMetric(f.most, "loads-at-once")
	for _, outcome := range outcomes {
		b.ReportMetric(median(f.during[outcome]), string(outcome))
	}
}
