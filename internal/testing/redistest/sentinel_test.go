package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestSentinelPromotesTheReplicaWhenThePrimaryDies(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	rdb := s.FailoverClient(t)
	set(t, rdb, "before")
	s.Primary().Kill()
	redistest.Await(t, "the client to write to the promoted replica", func() bool {
		return rdb.Set(t.Context(), "after", "v", 0).Err() == nil
	})
	if got := s.Replica().Commands()["set"]; got == 0 {
		t.Error("the write went somewhere else")
	}
}

func TestSentinelIsAskedByItsAddressAndName(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	ask := redis.NewSentinelClient(&redis.Options{Addr: s.Addrs()[0]})
	t.Cleanup(func() { _ = ask.Close() })
	primary, err := ask.GetMasterAddrByName(t.Context(), s.Name()).Result()
	if err != nil || primary[1] != s.Primary().Addr()[len("127.0.0.1:"):] {
		t.Errorf("primary = %v, %v; want %s", primary, err, s.Primary().Addr())
	}
}
