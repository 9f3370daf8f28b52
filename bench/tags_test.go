package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func taggedLoad(value []byte, tags int) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		for i := range tags {
			cacheguard.SetTags(ctx, fmt.Sprint("tag:", i))
		}
		return value, nil
	}
}

// BenchmarkTaggedHit makes one caller, and 64 of them, read an entry without tags, and with one and four.
func BenchmarkTaggedHit(b *testing.B) {
	for _, tags := range []int{0, 1, 4} {
		guard, err := cacheguard.New(client(b), cacheguard.Config{Prefix: fmt.Sprint("tagged-hit-", tags), TTL: ttl})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = guard.Close() }) // always nil
		load := taggedLoad(scenario.ValueOf("k", valueSize), tags)
		get := func() {
			if _, err := cacheguard.Get(b.Context(), guard, "k", load); err != nil {
				b.Error(err)
			}
		}
		get()
		b.Run(fmt.Sprint("tags=", tags, "/callers=1"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				get()
			}
		})
		b.Run(fmt.Sprint("tags=", tags, "/callers=64"), func(b *testing.B) {
			b.SetParallelism(readers / 2)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					get()
				}
			})
		})
	}
}

// BenchmarkInvalidateTags invalidates a tag that ten entries have, and one that a million have, in turns.
func BenchmarkInvalidateTags(b *testing.B) {
	ways := make(map[string]func() error)
	for _, entries := range []int{10, 1_000_000} {
		guard := tagEntries(b, fmt.Sprint("tagged-", entries), entries)
		ways[fmt.Sprint("entries-", entries)] = func() error { return guard.InvalidateTags(b.Context(), "t") }
	}
	before, calls := deletions(), inTurns(b, ways)
	b.ReportMetric(float64(deletions()-before)/float64(calls), "dels/call")
}

// tagEntries stores entries that have the tag t, and returns a Guard of them.
func tagEntries(b *testing.B, prefix string, entries int) *cacheguard.Guard {
	b.Helper()
	const batch = 1000
	ctx, rdb := b.Context(), client(b)
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: prefix, TTL: ttl})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = guard.Close() }) // always nil
	if _, err := cacheguard.Get(ctx, guard, "k", func(ctx context.Context) ([]byte, error) {
		cacheguard.SetTags(ctx, "t")
		return []byte("value"), nil
	}); err != nil {
		b.Fatal(err)
	}
	var raw string
	redistest.Await(b, "the entry is stored", func() bool {
		raw, err = rdb.Get(ctx, prefix+":{k}").Result()
		return err == nil
	})
	for from := 0; from < entries; from += batch { // as the loads of that many keys would store them
		if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := from; i < min(from+batch, entries); i++ {
				p.Set(ctx, fmt.Sprintf("%s:{k%d}", prefix, i), raw, ttl)
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	return guard
}

// deletions is how many keys the server was asked to delete.
func deletions() int64 { return shared.Commands()["del"] }

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
