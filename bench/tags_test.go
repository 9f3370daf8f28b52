package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
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

// BenchmarkTaggedHit has one caller, and 64 of them, read an entry without tags, and with one and four.
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

// BenchmarkInvalidateTags invalidates a tag that ten entries have, and many.
func BenchmarkInvalidateTags(b *testing.B) {
	const batch = 1000
	for _, entries := range []int{10, 1_000_000} {
		b.Run(fmt.Sprint("entries=", entries), func(b *testing.B) {
			rdb := client(b)
			guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: fmt.Sprint("tagged-", entries), TTL: ttl})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = guard.Close() }() // always nil
			ctx := b.Context()
			if _, err := cacheguard.GetMany(ctx, guard, []string{"k"}, func(ctx context.Context, _ []string) (map[string][]byte, error) {
				cacheguard.SetTags(ctx, "t")
				return map[string][]byte{"k": []byte("value")}, nil
			}); err != nil {
				b.Fatal(err)
			}
			var raw string
			redistest.Await(b, "the entry is stored", func() bool {
				raw, err = rdb.Get(ctx, fmt.Sprintf("tagged-%d:{k}", entries)).Result()
				return err == nil
			})
			for from := 0; from < entries; from += batch { // as the loads of so many keys would store them
				if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
					for i := from; i < min(from+batch, entries); i++ {
						p.Set(ctx, fmt.Sprintf("tagged-%d:{k%d}", entries, i), raw, ttl)
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := guard.InvalidateTags(ctx, "t"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
