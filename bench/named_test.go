package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
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

// The functions below prepare outcomes of named caches and tags, as outcomes_test.go does outcomes of Get.

// namedCache is one of a new kind, whose things have that many tags.
func namedCache(t testing.TB, rdb *redis.Client, cfg cacheguard.Config, tags int) (*cacheguard.Guard, *cacheguard.Cache[int64, []byte]) {
	t.Helper()
	g := countedGuard(t, rdb, cfg)
	kind := cacheguard.CacheConfig[int64, []byte]{
		Name: rand.Text(), Load: func(ctx context.Context, _ int64) ([]byte, error) { return loadValue(ctx) },
	}
	if tags > 0 {
		names := make([]string, tags)
		for i := range names {
			names[i] = fmt.Sprint(kind.Name, i)
		}
		kind.Tags = func(int64, []byte) []string { return names }
	}
	c, err := cacheguard.NewCache(g, kind)
	if err != nil {
		t.Fatal(err)
	}
	return g, c
}

func cacheHit(cfg cacheguard.Config, tags int) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		g, c := namedCache(t, rdb, cfg, tags)
		awaitStored(t, g, c, 1)
		get := func() error {
			_, err := c.Get(t.Context(), 1)
			return err
		}
		if err := errors.Join(get(), get()); err != nil { // into the local tier
			t.Fatal(err)
		}
		return get
	}
}

// awaitStored waits until things are in the cache: the first load of one may not know its tags.
func awaitStored(t testing.TB, g *cacheguard.Guard, c *cacheguard.Cache[int64, []byte], ids ...int64) {
	t.Helper()
	for _, id := range ids {
		redistest.Await(t, "it is stored", func() bool {
			if _, err := c.Get(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			state, err := g.Inspect(t.Context(), c.Key(id))
			return err == nil && state.State == cacheguard.EntryFresh
		})
	}
}

// put makes a Cache without tags write.
func put(t testing.TB, rdb *redis.Client) func() error {
	_, c := namedCache(t, rdb, cacheguard.Config{}, 0)
	return func() error { return c.Put(t.Context(), 1, loadValue) }
}

// invalidateTag invalidates a tag of that many entries.
func invalidateTag(entries int) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		g := countedGuard(t, rdb, cacheguard.Config{})
		tag := rand.Text()
		load := func(ctx context.Context, keys []string) (map[string][]byte, error) {
			cacheguard.SetTags(ctx, tag)
			all := make(map[string][]byte, len(keys))
			for _, key := range keys {
				all[key] = []byte("value")
			}
			return all, nil
		}
		keys := make([]string, entries)
		for i := range keys {
			keys[i] = fmt.Sprint(tag, i)
		}
		if _, err := cacheguard.GetMany(t.Context(), g, keys, load); err != nil {
			t.Fatal(err)
		}
		return func() error { return g.InvalidateTags(t.Context(), tag) }
	}
}
