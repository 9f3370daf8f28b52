package semaphore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/locktest"
)

func TestPermitsLiveOnInASlotThatStaysOpen(t *testing.T) {
	t.Parallel()
	locktest.OpenSlot(t, map[string]func(*testing.T, *redis.ClusterClient, string, time.Duration) *Lease{
		"permit": func(t *testing.T, rdb *redis.ClusterClient, prefix string, ttl time.Duration) *Lease {
			t.Helper()
			k, err := New(rdb, Config{Prefix: prefix, TTL: ttl, Permits: 2})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = k.Close() }) // always nil
			l, err := k.Lock(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
	})
}
