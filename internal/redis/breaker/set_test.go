package breaker

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/keys"
)

func TestPartsOfAClusterAreRangesOfSlots(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { _ = rdb.Close() }()
	h := New(rdb, "shop", time.Second, nil)
	for i := range 10_000 {
		key := strconv.Itoa(i)
		part := h.Part(key)
		if low, high := part*keys.Slots/Parts, (part+1)*keys.Slots/Parts; keys.Slot(key) < low || keys.Slot(key) > high {
			t.Fatalf("slot %d is in part %d, which is from %d to %d", keys.Slot(key), part, low, high)
		}
		if h.Of(key) != h.Breaker(part) {
			t.Fatalf("key %q has the breaker of another part", key)
		}
	}
}
