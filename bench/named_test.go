package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// BenchmarkCacheBesideGet measures a hit of a Cache and one of Get in turns, so that whatever else the machine does affects both. Times are
// medians of batches.
func BenchmarkCacheBesideGet(b *testing.B) {
	for name, cfg := range map[string]cacheguard.Config{
		"redis": {}, "local": {Local: cacheguard.LocalConfig{MaxEntries: 100, TTL: ttl}},
	} {
		b.Run(name, func(b *testing.B) {
			inTurns(b, map[string]func() error{
				"get": hit(cfg)(b, client(b)), "cache": cacheHit(cfg, 0)(b, client(b)),
			})
		})
	}
}

// BenchmarkTaggedBesideUntagged measures hits of things with tags beside one without.
func BenchmarkTaggedBesideUntagged(b *testing.B) {
	for name, cfg := range map[string]cacheguard.Config{
		"redis": {}, "local": {Local: cacheguard.LocalConfig{MaxEntries: 100, TTL: ttl}},
	} {
		b.Run(name, func(b *testing.B) {
			ways := make(map[string]func() error)
			for _, tags := range []int{0, 1, 4} {
				ways[fmt.Sprint("tags-", tags)] = cacheHit(cfg, tags)(b, client(b))
			}
			inTurns(b, ways)
		})
	}
}

// inTurns runs batches of each way, reports the median time of one call, and returns how many there were.
func inTurns(b *testing.B, ways map[string]func() error) (calls int) {
	b.Helper()
	const batch = 200
	times := make(map[string][]float64)
	for b.Loop() {
		for name, do := range ways {
			start := time.Now()
			for range batch {
				if err := do(); err != nil {
					b.Fatal(err)
				}
			}
			calls += batch
			times[name] = append(times[name], float64(time.Since(start))/batch)
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, all := range times {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name+"-ns")
	}
	return calls
}
