package health

import (
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

func TestSlotIsTheOneOfTheServer(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--cluster-enabled", "yes").Client(t)
	keys := []string{"a", "{a}", "x{a}y", "x{}y", "{}a", "a{b{c}d}", "}{a}", "a{b", "ü", "\x00\xff"}
	for i := range 200 {
		keys = append(keys, "product:"+strconv.Itoa(i))
	}
	for _, key := range keys {
		want, err := rdb.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := slot(key); got != int(want) {
			t.Errorf("slot(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestPartsOfAClusterAreRangesOfSlots(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { _ = rdb.Close() }()
	h := New(rdb, nil)
	for i := range 10_000 {
		key := strconv.Itoa(i)
		part := h.Part(key)
		if low, high := part*slots/Parts, (part+1)*slots/Parts; slot(key) < low || slot(key) > high {
			t.Fatalf("slot %d is in part %d, which is from %d to %d", slot(key), part, low, high)
		}
		if h.Of(key) != h.Breaker(part) {
			t.Fatalf("key %q has the breaker of another part", key)
		}
	}
}
