package main

import (
	"crypto/rand"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

func TestALockThatInstancesHoldInAnotherRedisIsNotRevokedThere(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	rdb := shared.Client(t)
	one, err := mutex.New(rdb, mutex.Config{RedisTimeout: redistest.Patience, Prefix: prefix, Instance: "shop-1"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = one.Close() }) // always nil
	many, err := rwlock.New(rdb, rwlock.Config{RedisTimeout: redistest.Patience, Prefix: prefix, Instance: "shop-1"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = many.Close() }) // always nil
	some, err := semaphore.New(rdb, semaphore.Config{RedisTimeout: redistest.Patience, Prefix: prefix, Instance: "shop-1", Permits: 2})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = some.Close() }) // always nil
	_, err = one.Lock(t.Context(), "job")
	expect.ErrorIs(t, err)
	_, err = many.Lock(t.Context(), "job")
	expect.ErrorIs(t, err)
	_, err = some.Lock(t.Context(), "job")
	expect.ErrorIs(t, err)
	_, err = many.RLock(t.Context(), "read")
	expect.ErrorIs(t, err)
	page := httptest.NewServer(admin.NewHandler(admin.Config{Lockers: []admin.Locker{one, many, some}}))
	t.Cleanup(page.Close)

	wrong := at(shared) + "/1"
	locks := func(url string, args ...string) ran {
		return ctl(t, url, slices.Concat([]string{"--lock-prefix", prefix, "locks"}, args, []string{"--page", page.URL})...)
	}
	for _, kind := range []string{"mutex", "rwlock", "semaphore"} {
		says := "REDIS_URL names " + shared.Addr() + ", database 1, and shop-1 uses another for locks"
		locks(wrong, "revoke", "--yes", "--kind", kind, "job").want(t, misused, "nothing was done", says)
		locks(wrong, "show", "job").want(t, done, "note: "+says)
		locks(wrong, "revoke", "--yes", "--kind", kind, "free").want(t, misused, "nothing was done", says)
		locks(at(shared), "revoke", "--yes", "--kind", kind, "free").want(t, failed, "nobody holds the "+kind, "database 0")
		expect.Equal(t, "noted of the right one", strings.Contains(locks(at(shared), "show", "job").out, "note: "), false)
		locks(at(shared), "revoke", "--yes", "--kind", kind, "job").want(t, done, "1 holders")
	}
	locks(at(shared), "revoke", "--yes", "--kind", "rwlock", "read").want(t, done, "1 holders")
}

// A lock proves which Redis the instances use, and leaves its fence, if nobody removes it.
func TestLooksAtLocksLeaveNothingInRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	one, err := mutex.New(rdb, mutex.Config{RedisTimeout: redistest.Patience, Prefix: "jobs", Instance: "shop-1"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = one.Close() }) // always nil
	many, err := rwlock.New(rdb, rwlock.Config{RedisTimeout: redistest.Patience, Prefix: "jobs", Instance: "shop-1"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = many.Close() }) // always nil
	some, err := semaphore.New(rdb, semaphore.Config{RedisTimeout: redistest.Patience, Prefix: "jobs", Instance: "shop-1", Permits: 2})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = some.Close() }) // always nil
	page := httptest.NewServer(admin.NewHandler(admin.Config{Lockers: []admin.Locker{one, many, some}}))
	t.Cleanup(page.Close)
	for _, args := range []string{"locks show import", "locks show import --page " + page.URL, "locks revoke import --yes --page " + page.URL, "check --page " + page.URL} {
		ctl(t, at(s), append([]string{"--lock-prefix", "jobs"}, strings.Fields(args)...)...)
		left, err := rdb.Keys(t.Context(), "*").Result()
		expect.ErrorIs(t, err)
		expect.Equal(t, "left by "+args, strings.Join(left, " "), "")
	}
}
