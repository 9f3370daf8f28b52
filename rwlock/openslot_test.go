package rwlock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/locktest"
)

func TestReadersAndWritersLiveOnInASlotThatStaysOpen(t *testing.T) {
	t.Parallel()
	hold := func(lock func(*Locker, context.Context, string) (*Lease, error)) func(*testing.T, *redis.ClusterClient, string, time.Duration) *Lease {
		return func(t *testing.T, rdb *redis.ClusterClient, prefix string, ttl time.Duration) *Lease {
			t.Helper()
			k, err := New(rdb, Config{Prefix: prefix, TTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = k.Close() }) // always nil
			return must(t, k, lock, "x")
		}
	}
	locktest.OpenSlot(t, map[string]func(*testing.T, *redis.ClusterClient, string, time.Duration) *Lease{
		"reader": hold((*Locker).RLock), "writer": hold((*Locker).Lock),
	})
}
