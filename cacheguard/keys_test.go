package cacheguard

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
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

// vandals put at a key what nobody expects there.
func vandals() map[string]func(ctx context.Context, rdb client, key string) {
	all := map[string]func(ctx context.Context, rdb client, key string){
		"a list": func(ctx context.Context, rdb client, key string) { rdb.RPush(ctx, key, "x") },
		"a set":  func(ctx context.Context, rdb client, key string) { rdb.SAdd(ctx, key, "x") },
		"a stream": func(ctx context.Context, rdb client, key string) {
			rdb.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []any{"a", "b"}})
		},
	}
	for _, text := range []string{"", "x", "12345678", "123456789", "\xfb", "\xfb" + strings.Repeat("\x01", 40), "9223372036854775807", "inf"} {
		all[fmt.Sprintf("the text %.12q", text)] = func(ctx context.Context, rdb client, key string) { rdb.Set(ctx, key, text, 0) }
	}
	for _, number := range []string{"x", "", "-1", "inf", "-inf", "nan", "1e300", "99999999999999999999", "1 inf", "inf inf", "99999999999999999999 99999999999999999999"} {
		all[fmt.Sprintf("a hash of %.14q", number)] = func(ctx context.Context, rdb client, key string) {
			for _, field := range []string{"token", "deadline", "length", "generation", "holder", "until", "failures", "writer:a", "inbox:", "inbox:a", "x"} {
				rdb.HSet(ctx, key, field, number)
			}
		}
		all[fmt.Sprintf("a sorted set of %.14q", number)] = func(ctx context.Context, rdb client, key string) {
			_ = rdb.Process(ctx, redis.NewCmd(ctx, "zadd", key, number, "x")) // nan is refused
		}
	}
	return all
}

// Whoever may write to Redis may spoil a key, but must not end a process, or keep a caller from its value.
func TestWhateverIsAtTheKeysOfAKeyACallerGetsItsValue(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{WaitTimeout: 50 * time.Millisecond})
	g := f.guards[0]
	users, err := NewCache(g, CacheConfig[int, string]{Name: "user", Version: 1, Load: func(context.Context, int) (string, error) { return "named", nil }})
	expect.ErrorIs(t, err)
	n := 0
	for _, suffix := range []string{"", ":lease", ":lease:error", ":intent", ":until", ":v0", ":v1", ":v1:lease", ":rw", ":rw:queue"} {
		for name, spoil := range vandals() {
			n++
			key := fmt.Sprintf("k%d", n)
			spoil(t.Context(), f.redis, g.keys.ValueKey(key)+suffix)
			spoil(t.Context(), f.redis, g.keys.ValueKey(users.Key(n))+suffix)
			ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
			at := fmt.Sprintf("%s at %q", name, suffix)
			expect.Equal(t, at, fmt.Sprint(Get(ctx, g, key, returns("v"))), "v<nil>")
			expect.Equal(t, at+", of a Cache", fmt.Sprint(users.Get(ctx, n)), "named<nil>")
			_, _ = g.Inspect(ctx, key)                                         // which may say that it cannot be read
			_ = g.Update(ctx, key, func(context.Context) error { return nil }) // nor need it be writable
			expect.ErrorIs(t, g.Invalidate(ctx, key))
			expect.Equal(t, at+", afterwards", fmt.Sprint(Get(ctx, g, key, returns("w"))), "w<nil>")
			cancel()
		}
	}
	for _, key := range f.redis.Keys(t.Context(), g.cfg.Prefix+":*epoch*").Val() {
		for name, spoil := range vandals() {
			f.redis.Del(t.Context(), key)
			spoil(t.Context(), f.redis, key)
			n++
			ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
			expect.Equal(t, name+" at "+key, fmt.Sprint(Get(ctx, g, fmt.Sprint("k", n), returns("v"))), "v<nil>")
			expect.Equal(t, name+" at "+key+", of a Cache", fmt.Sprint(users.Get(ctx, n)), "named<nil>")
			expect.ErrorIs(t, g.InvalidateAll(ctx))
			cancel()
		}
	}
}
