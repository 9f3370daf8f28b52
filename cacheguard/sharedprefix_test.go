package cacheguard

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/segment"
	"github.com/cacheguard/go/semaphore"
)

// Keys are often made of what visitors send: what else a program keeps under the Prefix must be out of their reach.
func TestNoKeyOfAGuardIsThatOfALockAValueOrACounter(t *testing.T) {
	t.Parallel()
	rdb, prefix := shared.Client(t), "prefix-"+rand.Text()
	g := newGuard(t, rdb, Config{Prefix: prefix})
	locks, err := mutex.New(rdb, mutex.Config{Prefix: prefix, RedisTimeout: bearing})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = locks.Close() }) // always nil, as those below
	rwlocks, err := rwlock.New(rdb, rwlock.Config{Prefix: prefix, RedisTimeout: bearing})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = rwlocks.Close() })
	permits, err := semaphore.New(rdb, semaphore.Config{Prefix: prefix, Permits: 1, RedisTimeout: bearing})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = permits.Close() })
	store, err := cas.New(rdb, cas.Config{Prefix: prefix, RedisTimeout: bearing})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = store.Close() })
	counters, err := segment.New(rdb, segment.Config{Prefix: prefix, Segments: 1, RedisTimeout: bearing})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = counters.Close() })

	const name = "import"
	exclusive, err := locks.Lock(t.Context(), name)
	expect.ErrorIs(t, err)
	reading, err := rwlocks.RLock(t.Context(), name)
	expect.ErrorIs(t, err)
	permit, err := permits.Lock(t.Context(), name)
	expect.ErrorIs(t, err)
	_, err = cas.Swap(t.Context(), store, name, "", "kept")
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, counters.Create(t.Context(), name, 7))

	theirs := rdb.Keys(t.Context(), prefix+":*").Val()
	for _, key := range theirs {
		if strings.HasSuffix(key, ":recent") { // it would be gone after a minute
			expect.ErrorIs(t, rdb.Persist(t.Context(), key).Err())
		}
	}
	for _, key := range append(theirs, prefix+":{"+name+"}", prefix+":{0.0/"+name+"}") {
		for _, key := range []string{name, key, key[len(prefix)+1:], key[len(prefix)+2:], "0.0/" + name} {
			expect.Equal(t, "the value of "+key, mustGet(t, g, key, returns("page")), "page")
			mustInvalidate(t, g, key)
		}
	}
	for _, key := range theirs {
		expect.Equal(t, key+" is there", rdb.Exists(t.Context(), key).Val(), 1)
	}
	value, _, err := cas.Get[string](t.Context(), store, name)
	expect.ErrorIs(t, err)
	expect.Equal(t, "the value", value, "kept")
	left, err := counters.TakeUpTo(t.Context(), name, 10)
	expect.ErrorIs(t, err)
	expect.Equal(t, "units left", left, 7)
	expect.ErrorIs(t, exclusive.Unlock(t.Context()))
	expect.ErrorIs(t, reading.Unlock(t.Context()))
	expect.ErrorIs(t, permit.Unlock(t.Context()))
}
