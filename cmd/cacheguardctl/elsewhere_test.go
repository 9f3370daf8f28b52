package main

import (
	"crypto/rand"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// realPage is the page of package admin of an instance with the Guards.
func realPage(t *testing.T, guards ...*cacheguard.Guard) string {
	page := httptest.NewServer(admin.New(guards...))
	t.Cleanup(page.Close)
	return page.URL
}

// orders are what an operator writes, and wants somebody to notice.
var orders = [][]string{{"invalidate", "a"}, {"invalidate", "--tag", "all"}, {"invalidate", "--all", "--yes"}, {"bypass", "20s", "--yes"}, {"bypass", "0"}}

func TestAnOrderToARedisThatTheInstancesDoNotUseIsRefused(t *testing.T) {
	t.Parallel()
	s, another, c := redistest.Start(t), redistest.Start(t), redistest.StartCluster(t, 0)
	prefix := "test-" + rand.Text()
	onOne, onCluster := newGuard(t, s.Client(t), prefix), newGuard(t, c.Client(t), prefix)
	keep(t, onOne, "a")
	keep(t, onCluster, "a")
	cluster := "redis://" + strings.Join(c.Addrs(), ",")
	for _, test := range []struct {
		guard      *cacheguard.Guard
		url, names string
	}{
		{onOne, at(s) + "/1", s.Addr() + ", database 1, and "},
		{onOne, at(another), another.Addr() + ", database 0, and "},
		{onOne, cluster, "the cluster of " + strings.Join(c.Addrs(), ", ")},
		{onCluster, at(s) + "/1", "uses the cluster of " + c.Addrs()[0]},
	} {
		page := realPage(t, test.guard)
		for _, order := range orders {
			r := ctl(t, test.url, append([]string{"--prefix", prefix, order[0], "--page", page, "--page", page}, order[1:]...)...)
			r.want(t, misused, "nothing was done", test.names, "CACHEGUARD_PAGES")
			expect.Equal(t, "output", r.out, "")
			expect.Equal(t, "how often an instance is named", strings.Count(r.errors, " uses "), 1)
		}
		for _, look := range [][]string{{"inspect", "a"}, {"stats"}, {"watch", "--every", "100ms", "--count", "1"}} {
			r := ctl(t, test.url, append([]string{"--prefix", prefix, look[0], "--page", page}, look[1:]...)...)
			r.want(t, done, "note: REDIS_URL names ", test.names)
		}
		ctl(t, test.url, "--prefix", prefix, "check", "--no-locks", "--page", page).want(t, failed, "it uses another Redis, ", "than REDIS_URL names, ")
	}
}

// noAlarm runs all commands on a Redis that the instances use.
func noAlarm(t *testing.T, url, prefix, page string) {
	t.Helper()
	for _, args := range append([][]string{{"check", "--no-locks"}, {"inspect", "a"}, {"stats"}, {"watch", "--every", "100ms", "--count", "1"}}, orders...) {
		r := ctl(t, url, append([]string{"--prefix", prefix, args[0], "--page", page}, args[1:]...)...)
		r.want(t, done)
		if strings.Contains(r.out+r.errors, "REDIS_URL names") {
			t.Errorf("%q: an alarm: %s%s", args, r.out, r.errors)
		}
	}
}

func TestTheRedisOfTheInstancesRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	second := shared.Client(t, func(o *redis.Options) { o.DB = 1 })
	for url, rdb := range map[string]cacheguard.Redis{
		at(shared): shared.Client(t), at(shared) + "/1": second, "redis://" + c.Addrs()[1]: c.Client(t),
	} {
		used, unused := "test-"+rand.Text(), "test-"+rand.Text()
		guard := newGuard(t, rdb, used)
		for i := range 4 {
			keep(t, guard, strconv.Itoa(i))
		}
		noAlarm(t, url, used, realPage(t, guard))
		noAlarm(t, url, unused, realPage(t, newGuard(t, rdb, unused))) // which has loaded nothing yet
	}
}

func TestCheckFindsAnotherRedisThoughNothingWasLoadedYet(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	page := realPage(t, newGuard(t, shared.Client(t), prefix))
	ctl(t, at(shared)+"/1", "--prefix", prefix, "bypass", "0", "--page", page).want(t, misused, "nothing was done")
	ctl(t, at(shared)+"/1", "--prefix", prefix, "check", "--page", page).want(t, failed, "it uses another Redis, "+shared.Addr()+", database 0")
}

func TestACopyOfTheRedisOfTheInstancesIsAnotherRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := redistest.StartReplica(t, s)
	prefix := "test-" + rand.Text()
	guard := newGuard(t, s.Client(t), prefix)
	locks, err := mutex.New(s.Client(t), mutex.Config{RedisTimeout: redistest.Patience, Prefix: prefix, Instance: "shop-1"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = locks.Close() }) // always nil
	keep(t, guard, "a")
	_, err = locks.Lock(t.Context(), "job")
	expect.ErrorIs(t, err)
	copies := replica.Client(t)
	redistest.Await(t, "the copy has all", func() bool { return copies.Exists(t.Context(), prefix+":{a}").Val() > 0 })
	page := httptest.NewServer(admin.NewHandler(admin.Config{Guards: []*cacheguard.Guard{guard}, Lockers: []admin.Locker{locks}}))
	t.Cleanup(page.Close)
	orders := append([][]string{{"locks", "revoke", "job", "--yes"}}, orders...)
	run := func(url string, order []string) ran {
		return ctl(t, url, slices.Concat([]string{"--prefix", prefix, "--lock-prefix", prefix}, order, []string{"--page", page.URL})...)
	}
	for _, order := range orders {
		run(at(replica), order).want(t, failed, "READONLY")
	}
	expect.ErrorIs(t, copies.ReplicaOf(t.Context(), "no", "one").Err())
	for _, order := range orders {
		run(at(replica), order).want(t, misused, "nothing was done", "REDIS_URL names "+replica.Addr())
		run(at(s), order).want(t, done)
	}
}

func TestAnOrderWithoutAProofIsDoneAndSaysSo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	prefix := "test-" + rand.Text()
	guard := newGuard(t, s.Client(t), prefix)
	keep(t, guard, "a")
	page := realPage(t, guard)
	const says = ": so cacheguardctl cannot tell whether the instances use this Redis, or one that it was copied from"
	expect.ErrorIs(t, s.Client(t).Do(t.Context(), "acl", "setuser", "poor", "on", ">secret", "~*", "&*", "+@all", "-set").Err())
	poor := "redis://poor:secret@" + s.Addr()
	ctl(t, poor, "--prefix", prefix, "invalidate", "--page", page, "a").want(t, done, "note: ", "NOPERM", says)
	ctl(t, poor, "--prefix", prefix, "check", "--page", page).want(t, failed, "NOPERM", says)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": s.Addr(), "two": redistest.Start(t).Addr()}})
	t.Cleanup(func() { _ = ring.Close() }) // always nil
	page = realPage(t, newGuard(t, ring, prefix))
	for range 8 { // what proves it is on a shard of its own each time
		ctl(t, at(s), "--prefix", prefix, "invalidate", "--page", page, "b").want(t, done)
	}
}

func TestAPrefixThatNoPageHasIsRefused(t *testing.T) {
	t.Parallel()
	page := realPage(t, newGuard(t, shared.Client(t), "test-"+rand.Text()))
	ctl(t, at(shared), "--prefix", "test-mistyped", "invalidate", "a", "--page", page+",http://127.0.0.1:1").want(t, misused, "nothing was done", `no page shows a Guard with the Prefix "test-mistyped"`)
}

func TestAnOrderThatSomeInstancesNoticeIsDoneAndTheOthersAreNamed(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	here, there := newGuard(t, shared.Client(t), prefix), newGuard(t, redistest.Start(t).Client(t), prefix)
	keep(t, here, "a")
	keep(t, there, "a")
	r := ctl(t, at(shared), "--prefix", prefix, "invalidate", "a", "--page", realPage(t, here)+","+realPage(t, there))
	r.want(t, done, "note: REDIS_URL names "+shared.Addr()+", database 0, and ")
	gone(t, here, "a")
}

func TestAnotherDatabaseIsNoticedWithoutPages(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	prefix := "test-" + rand.Text()
	keep(t, newGuard(t, s.Client(t), prefix), "a")                                     // and listens, on all databases of the server
	for _, args := range [][]string{{"bypass", "0"}, {"check"}, {"invalidate", "a"}} { // check leaves nothing behind
		ctl(t, at(s)+"/1", append([]string{"--prefix", prefix}, args...)...).want(t, done, "database 1 has nothing that a load leaves")
	}
	ctl(t, at(s), "--prefix", prefix, "check").want(t, done)
	ctl(t, at(s), "--prefix", prefix, "inspect", "a").want(t, done, `"a": fresh`)
	r := ctl(t, at(s), "--prefix", prefix, "bypass", "0")
	r.want(t, done)
	expect.Equal(t, "noted of the right one", r.errors, "")
}
