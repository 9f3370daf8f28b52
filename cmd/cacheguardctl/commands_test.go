package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

func TestCheckFindsNothingWrongWithAFreshRedis(t *testing.T) {
	t.Parallel()
	r := ctl(t, at(shared), "check")
	r.want(t, done, "version", "noeviction", "p99", "guard", "mutex", "rwlock", "semaphore")
	for line := range strings.Lines(r.out) {
		if !strings.HasPrefix(line, "ok ") && !strings.HasPrefix(line, "warning  clock") {
			t.Errorf("a finding: %s", line)
		}
	}
}

func TestCheckNamesTheRightThatAUserLacks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	err := rdb.Do(t.Context(), "ACL", "SETUSER", "poor", "on", ">secret", "~*", "&*", "+@all", "-evalsha").Err()
	expect.ErrorIs(t, err, nil)
	r := ctl(t, "redis://poor:secret@"+s.Addr(), "check")
	r.want(t, failed, "EVALSHA", "a check failed")
	if strings.Contains(r.out+r.errors, "secret") {
		t.Errorf("the password is printed: %s%s", r.out, r.errors)
	}
}

func TestCheckAndInvalidateKnowClusters(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	url := "redis://" + strings.Join(c.Addrs()[:2], ",")
	r := ctl(t, url, "check", "--json")
	r.want(t, done)
	expect.Equal(t, "nodes", strings.Count(r.out, `"version"`), 3)
	guard := newGuard(t, c.Client(t), "shop")
	for _, url := range []string{url, "redis://" + c.Addrs()[0]} {
		keep(t, guard, "a")
		keep(t, guard, "b")
		ctl(t, url, "--cluster", "--prefix", "shop", "invalidate", "a", "b").want(t, done)
		gone(t, guard, "a")
		gone(t, guard, "b")
	}
	ctl(t, url, "stats", "--json").want(t, done, c.Addrs()[2])
}

func TestOneNodeOfAClusterIsEnoughForEveryCommand(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	url := "redis://" + c.Addrs()[0]
	r := ctl(t, url, "check", "--json")
	r.want(t, done)
	expect.Equal(t, "nodes", strings.Count(r.out, `"version"`), 3)
	expect.Equal(t, "MOVED", strings.Contains(r.out, "MOVED"), false)
	guard := newGuard(t, c.Client(t), "shop")
	for _, key := range []string{"a", "b", "c", "d"} { // wherever they are
		keep(t, guard, key)
		ctl(t, url, "--prefix", "shop", "inspect", key).want(t, done, "fresh")
		ctl(t, url, "--prefix", "shop", "invalidate", key).want(t, done)
		gone(t, guard, key)
		ctl(t, url, "locks", "show", key).want(t, done)
	}
	ctl(t, url, "stats").want(t, done, c.Addrs()[1], c.Addrs()[2])
	ctl(t, url, "--prefix", "shop", "bypass", "--yes", "10m").want(t, done, "bypassed")
	ctl(t, url, "--prefix", "shop", "bypass", "0").want(t, done)
	ctl(t, url, "size", "--samples=1", "--payload=100", "--tags=1").want(t, done, "a cache with a version")
	for i := range c.Addrs() {
		err := c.Node(i).Client(t).Do(t.Context(), "acl", "setuser", "poor", "on", ">secret", "~*", "&*", "+@all", "-cluster").Err()
		expect.ErrorIs(t, err)
	}
	r = ctl(t, "redis://poor:secret@"+c.Addrs()[0], "check")
	r.want(t, failed, "NOPERM", "cluster")
	expect.Equal(t, "MOVED, to who may not ask for slots", strings.Contains(r.out, "MOVED"), false)
}

func newGuard(t *testing.T, rdb cacheguard.Redis, prefix string) *cacheguard.Guard {
	t.Helper()
	guard, err := cacheguard.New(rdb, cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	return guard
}

// keep waits until the key is in the cache, with the tag "all".
func keep(t *testing.T, g *cacheguard.Guard, key string) {
	t.Helper()
	redistest.Await(t, "the value is in the cache", func() bool {
		_, outcome, err := cacheguard.Fetch(t.Context(), g, key, cacheguard.Source[string]{Load: func(ctx context.Context, _ *string) (string, error) {
			cacheguard.SetTags(ctx, "all")
			return "old", nil
		}})
		return err == nil && outcome == cacheguard.Hit
	})
}

func gone(t *testing.T, g *cacheguard.Guard, key string) {
	t.Helper()
	_, _, err := cacheguard.Fetch(t.Context(), g, key, cacheguard.Source[string]{})
	expect.ErrorIs(t, err, cacheguard.ErrNotCached)
}

func TestInvalidateRemovesKeysTagsAndAll(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	for want, args := range map[string][]string{
		"invalidated  a\n": {"a"}, "invalidated tag  all\n": {"--tag", "all"}, "invalidated all of  " + prefix + "\n": {"--all", "--yes"},
	} {
		keep(t, guard, "a")
		r := ctl(t, at(shared), append([]string{"--prefix", prefix, "invalidate"}, args...)...)
		expect.Equal(t, "output", r.out, want)
		r.want(t, done)
		gone(t, guard, "a")
	}
}

func TestInvalidateRemovesACacheAndLeavesTheOthers(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	var loads [2]atomic.Int64
	var caches [2]*cacheguard.Cache[int, int]
	for i, name := range []string{"product", "list"} {
		var err error
		caches[i], err = cacheguard.NewCache(guard, cacheguard.CacheConfig[int, int]{
			Name: name, Load: func(context.Context, int) (int, error) { return int(loads[i].Add(1)), nil },
		})
		expect.ErrorIs(t, err, nil)
	}
	get := func(cache int) int {
		v, err := caches[cache].Get(t.Context(), 1)
		expect.ErrorIs(t, err, nil)
		return v
	}
	expect.Equal(t, "product", get(0), 1)
	expect.Equal(t, "list", get(1), 1)
	for _, key := range []string{"{product:1}", "{list:1}"} {
		redistest.Await(t, key+" is stored", func() bool { return shared.Client(t).Exists(t.Context(), prefix+":"+key).Val() == 1 })
	}
	r := ctl(t, at(shared), "--prefix", prefix, "invalidate", "--cache", "product")
	expect.Equal(t, "output", r.out, "invalidated cache  product\n")
	r.want(t, done)
	expect.Equal(t, "product", get(0), 2)
	expect.Equal(t, "list", get(1), 1)
}

func TestInspectShowsAnEntryAndWhoLoadsAKey(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: prefix, Instance: "shop-1"})
	expect.ErrorIs(t, err, nil)
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	keep(t, guard, "a")
	ctl(t, at(shared), "--prefix", prefix, "inspect", "a").want(t, done, `"a": fresh`, "all")
	ctl(t, at(shared), "--prefix", prefix, "inspect", "a", "--json").want(t, done, `"state":"fresh"`, `"tags":["all"]`, `"load":null`, `"writers":[]`)
	_, err = cacheguard.Get(t.Context(), guard, "b", func(context.Context) (string, error) {
		ctl(t, at(shared), "--prefix", prefix, "inspect", "b").want(t, done, `"b": missing`, "shop-1")
		ctl(t, at(shared), "--prefix", prefix, "inspect", "b", "--json").want(t, done, `"instance":"shop-1"`)
		return "", nil
	})
	expect.ErrorIs(t, err, nil)
	ctl(t, at(shared), "inspect").want(t, misused)
}

func TestInspectAndInvalidateReachEveryVersionOfAProgram(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	loads := 0
	things, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, string]{
		Name: "thing", Version: 7, Load: func(context.Context, int) (string, error) { loads++; return "", nil },
	})
	expect.ErrorIs(t, err, nil)
	get := func() {
		_, err := things.Get(t.Context(), 1)
		expect.ErrorIs(t, err, nil)
	}
	get()
	redistest.Await(t, "it is stored", func() bool {
		r := ctl(t, at(shared), "--prefix", prefix, "inspect", "thing:1", "--json")
		return strings.Contains(r.out, `"version":7`) && strings.Contains(r.out, `"state":"fresh"`)
	})
	ctl(t, at(shared), "--prefix", prefix, "inspect", "thing:1").want(t, done, `"thing:1" without a version: missing`, "version 7: fresh")
	get()
	expect.Equal(t, "loads", loads, 1)
	ctl(t, at(shared), "--prefix", prefix, "invalidate", "thing:1").want(t, done)
	get()
	expect.Equal(t, "loads after it was invalidated", loads, 2)
}

func TestBypassReachesEveryInstanceAndEnds(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	keep(t, guard, "a")
	outcome := func(want cacheguard.Outcome) func() bool {
		return func() bool {
			_, how, err := cacheguard.Fetch(t.Context(), guard, "a", cacheguard.Source[string]{
				Load: func(context.Context, *string) (string, error) { return "old", nil },
			})
			return err == nil && how == want
		}
	}
	ctl(t, at(shared), "--prefix", prefix, "bypass", "--yes", "10m").want(t, done, "bypassed", "10m0s")
	redistest.Await(t, "the cache is bypassed", outcome(cacheguard.Bypassed))
	const line = "the cache is bypassed on all instances, for another "
	ctl(t, at(shared), "--prefix", prefix, "inspect", "a").want(t, done, `"a": fresh`, line)
	ctl(t, at(shared), "--prefix", prefix, "inspect", "a", "--json").want(t, done, `"bypassed_for":`)
	ctl(t, at(shared), "--prefix", prefix, "bypass", "0s", "--json").want(t, done, `"seconds":0`)
	redistest.Await(t, "the cache is used", outcome(cacheguard.Hit))
	expect.Equal(t, "bypassed", strings.Contains(ctl(t, at(shared), "--prefix", prefix, "inspect", "a").out, line), false)
	ctl(t, at(shared), "--prefix", prefix, "bypass", "--yes", "25h").want(t, failed, "24h")
}

func TestLocksAreShownAndRevoked(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	one, err := mutex.New(shared.Client(t), mutex.Config{RedisTimeout: redistest.Patience, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close() }) // always nil
	many, err := rwlock.New(shared.Client(t), rwlock.Config{RedisTimeout: redistest.Patience, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = many.Close() }) // always nil
	lease, err := one.Lock(t.Context(), "job")
	expect.ErrorIs(t, err, nil)
	read, err := many.RLock(t.Context(), "file")
	expect.ErrorIs(t, err, nil)

	show := []string{"--lock-prefix", prefix, "locks", "show", "job", "file", "free"}
	ctl(t, at(shared), show...).want(t, done, "NAME", lease.Token(), "rwlock")
	revoke := []string{"--lock-prefix", prefix, "locks", "revoke", "--yes"}
	ctl(t, at(shared), append(revoke, "job")...).want(t, done, "1 holders")
	<-lease.Context().Done()
	expect.ErrorIs(t, context.Cause(lease.Context()), mutex.ErrRevoked)
	ctl(t, at(shared), append(revoke, "job")...).want(t, failed, "nobody holds")
	ctl(t, at(shared), append(revoke, "--kind", "rwlock", "file")...).want(t, done, "1 holders")
	<-read.Context().Done()
	expect.ErrorIs(t, context.Cause(read.Context()), rwlock.ErrRevoked)
}

func TestASemaphoreIsShownWithEachOfItsHoldersAndRevoked(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	reports, err := semaphore.New(shared.Client(t), semaphore.Config{RedisTimeout: redistest.Patience, Prefix: prefix, Permits: 2, Instance: "shop-1"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = reports.Close() }) // always nil
	first, err := reports.Lock(t.Context(), "reports")
	expect.ErrorIs(t, err)
	second, err := reports.Lock(t.Context(), "reports")
	expect.ErrorIs(t, err)
	third := make(chan error, 1)
	go func() { // owner: the test; stop: the revocation; joined by receiving
		third <- reports.Do(context.Background(), "reports", func(context.Context, *semaphore.Lease) error { return nil })
	}()

	args := []string{"--lock-prefix", prefix, "locks"}
	redistest.Await(t, "one waits", func() bool {
		return strings.Contains(ctl(t, at(shared), append(args, "show", "reports", "--json")...).out, `"waiting":1`)
	})
	r := ctl(t, at(shared), append(args, "show", "reports")...)
	r.want(t, done, "semaphore  2", "shop-1", first.Token(), second.Token())
	if strings.Contains(r.out, "mutex") {
		t.Errorf("there is no mutex: %s", r.out)
	}
	ctl(t, at(shared), append(args, "show", "reports", "--json")...).want(t, done, `"kind":"semaphore"`, `"holders":2`, `"held_by":[{"instance":"shop-1","token":`)
	revoke := append(args, "revoke", "--yes", "--kind", "semaphore", "reports")
	ctl(t, at(shared), revoke...).want(t, done, "2 holders")
	for _, lease := range []*semaphore.Lease{first, second} {
		<-lease.Context().Done()
		expect.ErrorIs(t, context.Cause(lease.Context()), semaphore.ErrRevoked)
	}
	expect.ErrorIs(t, <-third)
	ctl(t, at(shared), revoke...).want(t, failed, "nobody holds")
}

func TestWatchShowsInvalidationsUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	cmd := command(t.Context(), at(shared), "--prefix", prefix, "watch")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), want) {
			t.Fatalf("%q, %v; want …%q", lines.Text(), lines.Err(), want)
		}
	}
	next("subscribed  " + prefix + ":invalidated")
	expect.ErrorIs(t, guard.Invalidate(t.Context(), "a"), nil)
	next("invalidated  a")
	expect.ErrorIs(t, guard.Invalidate(t.Context(), "\x1b]0;owned\a\u202e"), nil)
	next(`invalidated  "\x1b]0;owned\a\u202e"`)
	expect.ErrorIs(t, guard.InvalidateAll(t.Context()), nil)
	if !lines.Scan() || !strings.Contains(lines.Text(), "invalidated_many  *") {
		t.Errorf("%q: InvalidateAll is not seen", lines.Text())
	}
	expect.ErrorIs(t, cmd.Process.Signal(os.Interrupt), nil)
	for lines.Scan() { // InvalidateAll is announced more than once
	}
	expect.ErrorIs(t, cmd.Wait(), nil)
}

func TestWatchNamesCachesAndTagsAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int, string]{
		Name: "product", Load: func(context.Context, int) (string, error) { return "v", nil },
	})
	expect.ErrorIs(t, err, nil)
	cmd := command(t.Context(), at(shared), "--prefix", prefix, "--json", "watch", "--count", "3")
	out, err := cmd.StdoutPipe()
	expect.ErrorIs(t, err, nil)
	expect.ErrorIs(t, cmd.Start(), nil)
	lines := bufio.NewScanner(out)
	next := func() (s seen) {
		if !lines.Scan() {
			t.Fatal("it has ended: ", lines.Err())
		}
		expect.ErrorIs(t, json.Unmarshal(lines.Bytes(), &s), nil)
		return s
	}
	expect.Equal(t, "event", next().Event, "subscribed")
	expect.ErrorIs(t, guard.InvalidateTags(t.Context(), "category:shoes"), nil)
	expect.Equal(t, "name", next().Name, "tag category:shoes")
	expect.ErrorIs(t, products.InvalidateAll(t.Context()), nil)
	expect.Equal(t, "name", next().Name, "cache product")
	expect.ErrorIs(t, guard.Invalidate(t.Context(), "a"), nil)
	expect.Equal(t, "name", next().Name, "a")
	expect.ErrorIs(t, cmd.Wait(), nil)
}

func TestWatchShowsNoRepetitions(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	cmd := command(t.Context(), at(shared), "--prefix", prefix, "watch", "--count", "1")
	out, err := cmd.StdoutPipe()
	expect.ErrorIs(t, err, nil)
	expect.ErrorIs(t, cmd.Start(), nil)
	lines := bufio.NewScanner(out)
	lines.Scan() // subscribed
	for _, message := range []string{"a/0 12= 9", "a/0 13 k"} {
		expect.ErrorIs(t, shared.Client(t).Publish(t.Context(), prefix+":invalidated", message).Err(), nil)
	}
	lines.Scan()
	expect.Equal(t, "line", strings.HasSuffix(lines.Text(), "invalidated  k"), true)
	expect.ErrorIs(t, cmd.Wait(), nil)
}

func TestStatsAndCheckNameTheNodeThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	url := "redis://" + strings.Join(c.Addrs(), ",") + "?max_retries=-1"
	c.Node(1).Kill()
	dead := c.Addrs()[1]
	for range 10 { // whichever node a client asks first
		r := ctl(t, url, "stats")
		r.want(t, failed, c.Addrs()[0]+"  7", c.Addrs()[2]+"  7", dead+": ", "refused")
	}
	ctl(t, url, "check", "--no-locks").want(t, failed, dead)
}

func TestStatsShowWhatTheUserMaySee(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	expect.ErrorIs(t, s.Client(t).Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "&*", "+@all", "-info").Err(), nil)
	ctl(t, "redis://app:secret@"+s.Addr(), "stats").want(t, failed, "listeners  0", s.Addr()+": NOPERM")
	expect.ErrorIs(t, s.Client(t).Do(t.Context(), "acl", "setuser", "app", "+info", "-pubsub").Err(), nil)
	ctl(t, "redis://app:secret@"+s.Addr(), "stats").want(t, failed, "listeners  unknown", s.Addr()+"  7", s.Addr()+": NOPERM")
}

func TestCheckSeesHowReplicasEvict(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	replica := redistest.StartReplica(t, primary)
	for name, value := range map[string]string{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"} {
		expect.ErrorIs(t, replica.Client(t).ConfigSet(t.Context(), name, value).Err(), nil)
	}
	ctl(t, at(primary), "check").want(t, done, "maxmemory-policy  "+replica.Addr()+"  replica: allkeys-lru, maxmemory 100.00M: locks may be evicted")
}

func TestAnInvalidationOfWhichLocalTiersWereNotToldIsNotAllDone(t *testing.T) {
	t.Parallel()
	s, c := redistest.Start(t), redistest.StartCluster(t, 0)
	for _, server := range []*redistest.Server{s, c.Node(0), c.Node(1), c.Node(2)} {
		for name, rules := range map[string][]any{"mute": {"&*", "-publish"}, "deaf": {"resetchannels", "&shop:inbox:*"}} {
			rules = append([]any{"acl", "setuser", name, "on", ">secret", "~*", "+@all"}, rules...)
			expect.ErrorIs(t, server.Client(t).Do(t.Context(), rules...).Err())
		}
	}
	for _, at := range []string{s.Addr(), c.Addrs()[0]} {
		for _, user := range []string{"mute", "deaf"} {
			for _, args := range [][]string{{"a", "b"}, {"--tag", "all"}, {"--cache", "product"}, {"--all", "--yes"}} {
				r := ctl(t, "redis://"+user+":secret@"+at, append([]string{"--prefix", "shop", "invalidate"}, args...)...)
				r.want(t, failed, "invalidated", "local tiers were not told, and may serve old values until Local.TTL", "+publish and &shop:invalidated", "NOPERM")
			}
			ctl(t, "redis://"+user+":secret@"+at, "--prefix", "shop", "bypass", "0").want(t, done) // instances look for it, and are not told
		}
	}
}

func TestFieldsOfJSONStay(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	for _, test := range []struct{ args, want []string }{
		{[]string{"check"}, []string{"findings", "findings.check", "findings.detail", "findings.node", "findings.result", "lock_prefix", "notes", "ok", "prefix"}},
		{[]string{"invalidate", "a"}, []string{"all", "caches", "keys", "missing", "notes", "prefix", "tags"}},
		{[]string{"locks", "show", "a"}, []string{
			"locks", "locks.fence", "locks.holders", "locks.instance", "locks.kind", "locks.left_ms", "locks.name", "locks.token", "locks.waiting",
			"locks.waiting_readers", "notes", "prefix",
		}},
		{[]string{"stats"}, []string{
			"listeners", "nodes", "nodes.connected_clients", "nodes.evicted_keys", "nodes.keyspace_hits", "nodes.keyspace_misses",
			"nodes.maxmemory", "nodes.maxmemory_policy", "nodes.node", "nodes.ops_per_sec", "nodes.problem", "nodes.used_memory", "nodes.version", "notes", "prefix",
		}},
	} {
		r := ctl(t, at(shared), append([]string{"--json", "--prefix", prefix, "--lock-prefix", prefix}, test.args...)...)
		r.want(t, done)
		if got := fields(t, r.out); !slices.Equal(got, test.want) {
			t.Errorf("%v has the fields %q, want %q", test.args, got, test.want)
		}
	}
}

func TestExitCodesSayWhatWasWrong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url  string
		args []string
		code int
		says string
	}{
		{at(shared), []string{"--help"}, done, "Usage"},
		{"", []string{"help"}, done, "Usage"},
		{"", []string{"help", "inspect"}, done, "Usage: cacheguardctl inspect"},
		{at(shared), []string{"invalidate"}, misused, "name keys"},
		{at(shared), []string{"invalidate", "--cache", "a:b"}, misused, "--cache"},
		{at(shared), []string{"--prefix", "a{b", "invalidate", "a"}, failed, "Prefix"},
		{at(shared), []string{"flush"}, misused, "flush"},
		{"", []string{"check"}, misused, "REDIS_URL is not set"},
		{at(shared), []string{"--no-locks", "check"}, misused, "--no-locks goes behind its command: cacheguardctl check --no-locks"},
		{at(shared), []string{"--tag", "x", "invalidate"}, misused, "cacheguardctl invalidate"},
		{at(shared), []string{"--nonsense", "check"}, misused, "unknown flag --nonsense"},
		{"u:hidden@localhost:6379", []string{"check"}, misused, "redis://localhost:6379"},
		{"", []string{"--version"}, done, "cacheguardctl "},
		{"http://x", []string{"check"}, misused, "unknown scheme"},
		{"redis+sentinel://127.0.0.1:1", []string{"check"}, misused, "name of the primary"},
		{"redis://u:hidden@127.0.0.1:x", []string{"check"}, misused, "REDIS_URL"},
		{"redis://u:123/hidden@127.0.0.1:6379", []string{"check"}, misused, "%2F"},
		{"redis://u:123?hidden@127.0.0.1:6379", []string{"check"}, misused, "%3F"},
		{"redis://u:0?client_name=hidden@127.0.0.1:6379", []string{"check"}, misused, "%3F"},
		{"redis://u:123#hidden@127.0.0.1:6379", []string{"check"}, misused, "%23"},
		{"redis://u:123/0?hidden=hidden@127.0.0.1:6379", []string{"check"}, misused, "REDIS_URL"},
		{"redis://127.0.0.1:6379/hidden", []string{"check"}, misused, "REDIS_URL"},
		{"redis+sentinel://u:123/hidden@127.0.0.1:1/main", []string{"check"}, misused, "REDIS_URL"},
		{"redis+sentinel://u:123?hidden@127.0.0.1:1/main", []string{"check"}, misused, "REDIS_URL"},
		{"redis://u:123/hidden@127.0.0.1:1,127.0.0.1:2", []string{"check"}, misused, "REDIS_URL"},
		{"u:hidden@x://127.0.0.1", []string{"check"}, misused, "unknown scheme"},
		{"redis://u:hidden@127.0.0.1:1", []string{"check"}, unreachable, "refused"},
		{"redis://u:hidden@127.0.0.1:1,127.0.0.1:2/?max_retries=-1", []string{"inspect", "a"}, unreachable, "from here: 127.0.0.1:1,127.0.0.1:2: "},
		{"redis://u:hidden@127.0.0.1:1", []string{"invalidate", "a"}, unreachable, "cacheguardctl check says more"},
		{"redis://u:hidden@" + shared.Addr(), []string{"check"}, failed, "WRONGPASS"},
	} {
		r := ctl(t, test.url, test.args...)
		r.want(t, test.code, test.says)
		if strings.Contains(r.out+r.errors, "hidden") {
			t.Errorf("%q prints the password: %s%s", test.args, r.out, r.errors)
		}
	}
}

func TestNothingThatATerminalObeysIsPrinted(t *testing.T) {
	t.Parallel()
	hostile := "\x1b[2J\u009b31m\u202e\x7f\ttab\nline"
	prefix := "test-" + rand.Text()
	for _, args := range [][]string{{"invalidate", hostile}, {"locks", "show", hostile}, {"locks", "revoke", "--yes", hostile}} {
		for _, flags := range [][]string{nil, {"--json"}} {
			r := ctl(t, at(shared), slices.Concat(flags, []string{"--prefix", prefix, "--lock-prefix", prefix}, args)...)
			if strings.ContainsAny(r.out+r.errors, "\x1b\u009b\u202e\x7f\t") || !strings.Contains(r.out+r.errors, "tab") {
				t.Errorf("%q prints %q", args[0], r.out+r.errors)
			}
		}
	}
}

func TestAClosedOutputIsAnError(t *testing.T) {
	t.Parallel()
	p := printer{to: broken{}}
	for _, p.json = range []bool{false, true} {
		expect.ErrorIs(t, p.print(revoked{}), errBroken)
	}
}

var errBroken = errors.New("broken pipe")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWhatFailsHasAHintAndAnObject(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	locks, err := rwlock.New(shared.Client(t), rwlock.Config{RedisTimeout: redistest.Patience, Prefix: prefix})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = locks.Close() }) // always nil
	_, err = locks.Lock(t.Context(), "cat")
	expect.ErrorIs(t, err)
	r := ctl(t, at(shared), "--lock-prefix", prefix, "--json", "locks", "revoke", "cat", "--yes")
	r.want(t, failed, `nobody holds the mutex`, "a rwlock of this name is held: --kind rwlock")
	expect.Equal(t, "fields", strings.Join(fields(t, r.out), " "), "error")
	r = ctl(t, at(shared), "--prefix", prefix, "--json", "bypass", "25h", "--yes")
	r.want(t, failed)
	expect.Equal(t, "fields with notes", strings.Join(fields(t, r.out), " "), "error notes")
	r = ctl(t, "redis://127.0.0.1:1", "--json", "inspect", "a")
	r.want(t, unreachable)
	expect.Equal(t, "fields without Redis", strings.Join(fields(t, r.out), " "), "error")
}
