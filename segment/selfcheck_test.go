package segment

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func shopOn(t *testing.T, rdb *redis.Client) *Counter {
	t.Helper()
	s, err := New(rdb, Config{Prefix: "shop", RedisTimeout: redistest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // always nil
	return s
}

func TestAUserWithTheDocumentedRightsCanDoEverything(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := shopOn(t, redistest.DeclaredKeys(t, server.Client(t, server.As(t, acl.Segment.ACL("shop")...))))
	if err := s.SelfCheck(redistest.Patiently(t)); err != nil {
		t.Error(err)
	}
	if err := s.Create(t.Context(), name, 1000); err != nil {
		t.Fatal(err)
	}
	if n, err := s.TakeUpTo(t.Context(), name, 1000); n != 1000 || err != nil { // of all segments
		t.Error(n, err)
	}
}

func TestSelfCheck(t *testing.T) {
	t.Parallel()
	redistest.SelfCheck(t, acl.Segment.ACL("shop"), "hgetall", ErrClosed, shopOn)
}
