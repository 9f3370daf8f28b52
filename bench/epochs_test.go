package bench

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
)

// BenchmarkTogether measures what it costs that entries are invalidated together: a lone caller's hits without tags, in a Cache, with one
// and four tags, and the invalidations, at several round trips.
func BenchmarkTogether(b *testing.B) {
	s := server.Of(shared)
	b.Cleanup(func() { _ = s.Close() })
	for _, roundTrip := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond} {
		for _, o := range []outcome{
			{name: "plain GET", prep: plainGET},
			{name: "hit", prep: hit(cacheguard.Config{})},
			{name: "hit of a Cache", prep: cacheHit(cacheguard.Config{}, 0)},
			{name: "hit with a tag", prep: cacheHit(cacheguard.Config{}, 1)},
			{name: "hit with four tags", prep: cacheHit(cacheguard.Config{}, 4)},
			{name: "InvalidateTags", prep: invalidateTag(10)},
			{name: "InvalidateAll", prep: invalidateAll},
		} {
			b.Run(fmt.Sprintf("%v/%s", roundTrip, strings.ReplaceAll(o.name, " ", "_")), func(b *testing.B) {
				do := o.prep(b, at(b, roundTrip))
				if err := errors.Join(do(), do()); err != nil { // connections, scripts
					b.Fatal(err)
				}
				before, err := s.Usage(b.Context())
				for b.Loop() {
					err = errors.Join(err, do())
				}
				after, failed := s.Usage(b.Context())
				if err = errors.Join(err, failed); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(after.Since(before).CPU.Microseconds())/float64(b.N), "server-µs/op")
			})
		}
	}
}

// at is a client whose Redis is that far away.
func at(b *testing.B, roundTrip time.Duration) *redis.Client {
	if roundTrip == 0 {
		return client(b)
	}
	proxy, err := distance.Start(shared.Addr(), roundTrip)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = proxy.Close() })
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), PoolSize: poolSize})
	b.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func plainGET(t testing.TB, rdb *redis.Client) func() error {
	if err := rdb.Set(t.Context(), "plain", "value", ttl).Err(); err != nil {
		t.Fatal(err)
	}
	return func() error { return rdb.Get(t.Context(), "plain").Err() }
}

func invalidateAll(t testing.TB, rdb *redis.Client) func() error {
	g := countedGuard(t, rdb, cacheguard.Config{})
	return func() error { return g.InvalidateAll(t.Context()) }
}
