package mutex

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// council is five servers that other tests use, too, each behind a proxy of its own.
type council struct {
	*testing.T
	prefix  string
	around  []*redis.Client // of the servers, to look around with
	proxies []*redistest.Proxy
}

func newCouncil(t *testing.T) *council {
	c := &council{T: t, prefix: "test-" + rand.Text()}
	for _, s := range redistest.SharedServers(t, 5) {
		c.around = append(c.around, s.Client(t))
		c.proxies = append(c.proxies, redistest.StartProxy(t, s.Addr()))
	}
	return c
}

func (c *council) quorum(cfg Config) *Quorum {
	c.Helper()
	var clients []Redis
	for _, p := range c.proxies {
		clients = append(clients, p.Client(c))
	}
	cfg.Prefix = c.prefix
	config.SetDefault(&cfg.RedisTimeout, redisTimeout)
	q, err := NewQuorum(clients, cfg)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = q.Close() })
	return q
}

// awaitFree waits until no server has a holder.
func (c *council) awaitFree(key string) {
	c.Helper()
	for i, rdb := range c.around {
		redistest.Await(c, fmt.Sprintf("server %d has no holder", i), func() bool {
			return rdb.HGet(context.Background(), key, "token").Val() == ""
		})
	}
}

// anothers are the calls of somebody else.
func anothers(key string) *calls { return &calls{keys: keysOf(key), id: "another", token: "another"} }

// run runs a call on one server.
func (c *council) run(i int, call script.Call) {
	c.Helper()
	expect.ErrorIs(c, call.Run(context.Background(), c.around[i]).Err())
}

const slowServer = 100 * time.Millisecond // is the time-out where too many servers are slow, or dead

// serverFaults are what may be wrong with a server when a lock of the key is asked for.
var serverFaults = map[string]struct {
	begin, end func(c *council, i int, key string)
}{
	"dead": {
		func(c *council, i int, _ string) { c.proxies[i].Refuse(true) },
		func(c *council, i int, _ string) { c.proxies[i].Refuse(false) },
	},
	"slow": {
		func(c *council, i int, _ string) { c.proxies[i].Delay(5 * slowServer) },
		func(c *council, i int, _ string) { c.proxies[i].Delay(0) },
	},
	"taken": {
		func(c *council, i int, key string) {
			c.run(i, anothers(key).asking(time.Hour, 0, 0, ""))
		},
		func(c *council, i int, key string) { // not DEL, which would forget who has given up while a request of theirs is on its way
			c.run(i, anothers(key).releasing(successor{}, false))
		},
	},
}

// The lock can be had if and only if at most two of the five servers are out of order, whichever they are.
func TestAQuorumLocksInEveryPatternWithAMajority(t *testing.T) {
	t.Parallel()
	for kind, fault := range serverFaults {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := newCouncil(t)
			patient, hasty := c.quorum(Config{TTL: time.Hour}), c.quorum(Config{TTL: time.Hour, RedisTimeout: slowServer})
			last := int64(0)
			for pattern := range 1 << 5 {
				if !expect.Drawn(3) {
					continue
				}
				q := patient
				if kind != "taken" && bits.OnesCount(uint(pattern)) > 2 {
					q = hasty
				}
				key := lockKey(q.base.Config.Prefix, "k")
				eachFaulty(pattern, func(i int) { fault.begin(c, i, key) })
				last = max(last, lockInPattern(t, q, pattern, kind == "taken", last))
				eachFaulty(pattern, func(i int) { fault.end(c, i, key) })
				redistest.Await(t, "the end of what was sent to slow servers", q.base.Life.Quiet)
				awaitServers(t, q)
				if kind != "dead" {
					c.awaitFree(key)
				} else {
					c.forget(key)
				}
			}
		})
	}
}

// awaitServers waits until all servers answer, and none of their breakers is open.
func awaitServers(t *testing.T, q *Quorum) {
	t.Helper()
	for _, server := range q.servers {
		redistest.Await(t, "a server answers", func() bool {
			_, err := server.Ask(t.Context(), inspecting(lockKey(q.base.Config.Prefix, "k")), nil)
			return err == nil && !server.Refused("k")
		})
	}
}

// eachFaulty calls f with each server whose bit is set in the pattern.
func eachFaulty(pattern int, f func(i int)) {
	for i := range 5 {
		if pattern>>i&1 == 1 {
			f(i)
		}
	}
}

// lockInPattern tries to lock and unlock, and checks the outcome. It returns the fence, or 0 if it did not get the lock.
func lockInPattern(t *testing.T, q *Quorum, pattern int, taken bool, last int64) (fence int64) {
	t.Helper()
	l, err := q.TryLock(context.Background(), "k")
	if (err == nil) != (bits.OnesCount(uint(pattern)) <= 2) {
		t.Errorf("pattern %05b: %v", pattern, err)
	}
	if err != nil {
		if errors.Is(err, ErrNotAcquired) != taken {
			t.Errorf("pattern %05b: somebody has the lock: %v, but %v", pattern, taken, err)
		}
		return 0
	}
	if l.Fence() <= last {
		t.Errorf("pattern %05b: fence %d after %d", pattern, l.Fence(), last)
	}
	if err := l.Extend(context.Background()); err != nil {
		t.Errorf("pattern %05b: extend: %v", pattern, err)
	}
	if err := l.Unlock(context.Background()); err != nil {
		t.Errorf("pattern %05b: unlock: %v", pattern, err)
	}
	return l.Fence()
}

// forget frees a lock where a release could not.
func (c *council) forget(key string) {
	for _, rdb := range c.around {
		rdb.HSet(context.Background(), key, "token", "")
	}
}

// One server's lanes are all busy, so it is asked only after a majority has granted the lock and the caller has given it up.
func TestAServerThatAQuorumHasNotAskedYetIsNotAskedAfterTheUnlock(t *testing.T) {
	t.Parallel()
	c := newCouncil(t)
	q := c.quorum(Config{TTL: time.Hour, RedisTimeout: time.Minute})
	held := c.proxies[4].On(redistest.Command("evalsha"), redistest.Hold)
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer cancel()
	for i := range 10 { // more than are sent at once
		busy.Go(func() {
			c := newCalls(ctx, lockKey(q.base.Config.Prefix, fmt.Sprint(i)), "")
			_, _ = q.servers[4].Ask(ctx, c.asking(time.Second, 0, 0, ""), nil)
		})
		redistest.Await(t, "it is under way", func() bool { return held.Count() > min(i, 3) })
	}
	l := must(t)(q.TryLock(t.Context(), "k"))
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	held.Remove()
	redistest.Await(t, "the end of all requests", q.base.Life.Quiet)
	c.awaitFree(lockKey(q.base.Config.Prefix, "k"))
}

func TestAQuorumHasOneHolderAtATimeAndFencesGrow(t *testing.T) {
	t.Parallel()
	c := newCouncil(t)
	inside, last := 0, int64(0) // the lock guards them
	var wg sync.WaitGroup
	for range 3 {
		q := c.quorum(Config{})
		wg.Go(func() {
			for range 5 {
				err := q.Do(patient(t), "k", func(_ context.Context, l *Lease) error {
					inside++
					if inside != 1 || l.Fence() <= last {
						t.Errorf("%d inside, fence %d after %d", inside, l.Fence(), last)
					}
					last = l.Fence()
					inside--
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAQuorumLeaseIsRenewedByAMajorityAndEndsWithoutOne(t *testing.T) {
	t.Parallel()
	c := newCouncil(t)
	const ttl = 5 * time.Second // longer than a busy machine holds up an answer
	q := c.quorum(Config{TTL: ttl})
	l := must(t)(q.Lock(patient(t), "k"))
	c.proxies[0].Refuse(true)
	c.proxies[1].Refuse(true)
	first := l.TrustedUntil()
	redistest.Await(t, "a renewal", func() bool { return l.TrustedUntil().After(first.Add(ttl)) })
	c.proxies[2].Refuse(true)
	cause(t, l, ErrLeaseLost)
	for i := range 3 {
		c.proxies[i].Refuse(false)
	}
}

func TestAQuorumRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	_, err := NewQuorum(nil, Config{Fair: true, TTL: -1})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, field := range []string{"Fair", "TTL", "clients"} {
		mention(t, err, field)
	}
	client := redis.NewClient(&redis.Options{}) // is not asked
	defer client.Close()
	type uncomparable struct {
		Redis
		_ []int
	}
	_, err = NewQuorum([]Redis{client, uncomparable{Redis: client}, uncomparable{Redis: client}, nil, client}, Config{})
	if err == nil {
		t.Fatal("accepted")
	}
	mention(t, err, "client 4")
}
