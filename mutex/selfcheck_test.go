package mutex

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
	s := shopOn(t, redistest.DeclaredKeys(t, server.Client(t, server.As(t, acl.Mutex.ACL("shop")...))))
	if err := s.SelfCheck(redistest.Patiently(t)); err != nil {
		t.Error(err)
	}
	// Two lockers wait for each other, and a lock is revoked.
	other := shopOn(t, redistest.DeclaredKeys(t, server.Client(t, server.As(t, acl.Mutex.ACL("shop")...))))
	l, err := s.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { // owner: the test; ends with Lock; joined by receiving
		next, err := other.Lock(t.Context(), "k")
		if err == nil {
			err = next.Unlock(t.Context())
		}
		waits <- err
	}()
	redistest.Await(t, "the other waits", func() bool {
		state, err := s.Inspect(t.Context(), "k")
		return err == nil && state.Waiters == 1
	})
	if err := l.Extend(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waits; err != nil {
		t.Error(err)
	}
}

func TestSelfCheck(t *testing.T) {
	t.Parallel()
	redistest.SelfCheck(t, acl.Mutex.ACL("shop"), "zadd", ErrClosed, shopOn)
}
