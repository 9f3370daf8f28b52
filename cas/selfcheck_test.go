package cas

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func shopOn(t *testing.T, rdb *redis.Client) *Store {
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
	s := shopOn(t, redistest.DeclaredKeys(t, server.Client(t, server.As(t, acl.CAS.ACL("shop")...))))
	if err := s.SelfCheck(redistest.Patiently(t)); err != nil {
		t.Error(err)
	}
	if n, err := Update(t.Context(), s, "k", func(n int, _ bool) (int, error) { return n + 1, nil }); n != 1 || err != nil {
		t.Error(n, err)
	}
}

func TestSelfCheck(t *testing.T) {
	t.Parallel()
	redistest.SelfCheck(t, acl.CAS.ACL("shop"), "lpos", ErrClosed, shopOn)
}
