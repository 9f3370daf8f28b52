package rwlock

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func shopOn(t *testing.T, rdb *redis.Client) *Locker {
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
	s := shopOn(t, redistest.DeclaredKeys(t, server.Client(t, server.As(t, acl.RWLock.ACL("shop")...))))
	if err := s.SelfCheck(redistest.Patiently(t)); err != nil {
		t.Error(err)
	}
	l, err := s.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Downgrade(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.TryUpgrade(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSelfCheck(t *testing.T) {
	t.Parallel()
	redistest.SelfCheck(t, acl.RWLock.ACL("shop"), "zadd", ErrClosed, shopOn)
}
