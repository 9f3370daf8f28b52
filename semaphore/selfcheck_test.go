package semaphore

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func shopOn(t *testing.T, rdb *redis.Client) *Locker {
	t.Helper()
	k, err := New(rdb, Config{Prefix: "shop", Permits: 1, RedisTimeout: redistest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return k
}

func TestAUserWithTheDocumentedRightsCanDoEverything(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k := shopOn(t, redistest.DeclaredKeys(t, server.Client(t, server.As(t, acl.Semaphore.ACL("shop")...))))
	if err := k.SelfCheck(redistest.Patiently(t)); err != nil {
		t.Error(err)
	}
	l := take(t, k)
	w := wait(t, k)
	redistest.Await(t, "it waits", func() bool {
		info, err := k.Inspect(t.Context(), "a")
		return err == nil && info.Waiters == 1
	})
	unlock(t, l)
	w.Got()
	if n, err := k.Revoke(t.Context(), "a"); err != nil || n != 1 {
		t.Errorf("%d revoked, %v", n, err)
	}
}

func TestSelfCheck(t *testing.T) {
	t.Parallel()
	redistest.SelfCheck(t, acl.Semaphore.ACL("shop"), "zadd", ErrClosed, shopOn)
}
