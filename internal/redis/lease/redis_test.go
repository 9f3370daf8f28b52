package lease_test

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const renewSource = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('pexpire', KEYS[1], ARGV[2])
redis.call('incr', KEYS[2])
return 1`

var renew = script.New(renewSource)

// held is a lease in Redis that counts its renewals.
type held struct {
	t   *testing.T
	rdb redis.Cmdable
	key string
	ttl time.Duration
}

func take(t *testing.T, rdb redis.Cmdable, key string, ttl time.Duration) *held {
	t.Helper()
	h := &held{t: t, rdb: rdb, key: "{" + t.Name() + key + rand.Text() + "}", ttl: ttl}
	expect.Must(t, rdb.Set(t.Context(), h.key, "token", ttl).Err())
	return h
}

func (h *held) renewal(lost func()) *lease.Renewal {
	return &lease.Renewal{TTL: h.ttl, Lease: &told{lost: lost, call: script.Call{
		Script: renew, Keys: []string{h.key, h.key + "renewals"}, Args: []any{"token", h.ttl.Milliseconds()},
	}}}
}

func (h *held) renewals() int {
	n, _ := h.rdb.Get(h.t.Context(), h.key+"renewals").Int() // 0 before the first
	return n
}

func (h *held) awaitRenewals(n int) {
	h.t.Helper()
	redistest.Await(h.t, strconv.Itoa(n)+" renewals of "+h.key, func() bool { return h.renewals() >= n })
}

func keeper(t *testing.T, rdb send.Redis, timeout time.Duration) *lease.Keeper {
	t.Helper()
	k, release := lease.Open(rdb, timeout)
	t.Cleanup(release)
	return k
}

func TestLeaseOutlivesItsTTLWhileItIsKept(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	h := take(t, rdb, "", 2*time.Second)
	drop := keep(keeper(t, rdb, timeout), h.renewal(mustKeep(t)))
	h.awaitRenewals(4) // the last one later than the lease was long
	drop()
	redistest.Await(t, "the lease expires", func() bool { return rdb.Exists(t.Context(), h.key).Val() == 0 })
}

func TestManyLeasesAreRenewedInOnePipeline(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	var all []*held
	for i := range 100 {
		all = append(all, take(t, rdb, strconv.Itoa(i), 6*time.Second))
	}
	expect.Must(t, rdb.ScriptLoad(t.Context(), renewSource).Err())
	before := s.Reads()
	k := keeper(t, rdb, 20*time.Second)
	for _, h := range all {
		k.Keep(h.renewal(mustKeep(t)))
	}
	redistest.Await(t, "100 renewals", func() bool { return s.Commands()["pexpire"] >= 100 })
	if n := s.Reads() - before; n > 5 { // the server may read a large pipeline in parts
		t.Errorf("100 renewals were read in %d parts", n)
	}
}

func TestLeaseWithAnotherTokenIsLostAndLeftAlone(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := shared.Client(t)
	stolen := take(t, rdb, "stolen", 600*time.Millisecond)
	expect.Must(t, rdb.Set(t.Context(), stolen.key, "another", 0).Err())
	lost := make(chan struct{}, 8)
	k := keeper(t, p.Client(t), timeout)
	k.Keep(stolen.renewal(func() { lost <- struct{}{} }))
	<-lost
	fence := take(t, rdb, "fence", 2*time.Second)
	k.Keep(fence.renewal(mustKeep(t)))
	fence.awaitRenewals(3)
	if len(lost) > 0 || stolen.renewals() != 0 {
		t.Errorf("lost %d times more, %d renewals", len(lost), stolen.renewals())
	}
	expect.Equal(t, "TTL of the other's lease", rdb.PTTL(t.Context(), stolen.key).Val(), -1)
}

func TestRenewalWhoseReplyIsLostStopsNoLaterOne(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := shared.Client(t)
	h := take(t, rdb, "", 3*time.Second)
	swallowed := p.On(redistest.Script(renewSource), redistest.HoldReply).Times(1)
	client := p.Client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 })
	k := keeper(t, client, 300*time.Millisecond)
	t.Cleanup(p.Cut) // ends the wait for the lost reply, before the keeper is released
	k.Keep(h.renewal(mustKeep(t)))
	<-swallowed.Hit()
	h.awaitRenewals(3)
}

func TestLeaseSurvivesErrorsAndBrokenConnections(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := shared.Client(t)
	h := take(t, rdb, "", 4*time.Second)
	refused := p.On(redistest.Script(renewSource), redistest.ReplyError("LOADING not yet")).Times(1)
	cut := p.On(redistest.Script(renewSource), redistest.CutBefore).Times(1)
	keeper(t, p.Client(t, func(o *redis.Options) { o.MaxRetries = -1 }), timeout).Keep(h.renewal(mustKeep(t)))
	h.awaitRenewals(2)
	if refused.Count() != 1 || cut.Count() != 1 {
		t.Errorf("%d errors and %d cuts, want one each", refused.Count(), cut.Count())
	}
}

func TestLeasesOnAllNodesOfAClusterAreRenewed(t *testing.T) {
	t.Parallel()
	rdb := redistest.StartCluster(t, 0).Client(t)
	k := keeper(t, rdb, timeout)
	var all []*held
	for i := range 12 {
		h := take(t, rdb, strconv.Itoa(i), 3*time.Second)
		all = append(all, h)
		k.Keep(h.renewal(mustKeep(t)))
	}
	for _, h := range all {
		h.awaitRenewals(2)
	}
}

func TestANodeThatIsAwayCostsNoLeaseOnTheOthers(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*redistest.Server){
		"hangs": (*redistest.Server).Pause, "died": (*redistest.Server).Kill,
	}, func(t *testing.T, _ string, leaves func(*redistest.Server)) {
		c := redistest.StartCluster(t, 0)
		rdb := c.Client(t)
		err := rdb.ForEachShard(t.Context(), func(ctx context.Context, node *redis.Client) error {
			return node.ConfigSet(ctx, "cluster-require-full-coverage", "no").Err()
		})
		expect.Must(t, err)
		k := keeper(t, rdb, timeout)
		var live []*atomic.Int64 // how often each lease on a node that stays was kept since
		for i := range 12 {
			h := take(t, rdb, strconv.Itoa(i), time.Minute)
			r := h.renewal(mustKeep(t))
			if keys.Slot(h.key) >= keys.Slots/3 { // node 0 has the first third
				kept := new(atomic.Int64)
				live = append(live, kept)
				r.Lease.(*told).kept = func(time.Time) { kept.Add(1) }
			}
			r.TTL = time.Second // it is renewed so often
			k.Keep(r)
		}
		leaves(c.Node(0))
		for _, kept := range live {
			kept.Store(0)
		}
		for _, kept := range live {
			redistest.Await(t, "renewals are answered", func() bool { return kept.Load() >= 4 })
		}
		c.Node(0).Resume() // so that the end need not wait for it
	})
}
