package wake_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// ring is a Ring of two servers behind proxies.
type ring struct {
	*redis.Ring
	proxies []*redistest.Proxy
	direct  []*redis.Client // past the proxies
}

func newRing(t *testing.T) *ring {
	t.Helper()
	r := new(ring)
	addrs := make(map[string]string)
	servers := redistest.SharedServers(t, 2)
	for i, name := range []string{"a", "b"} {
		s := servers[i]
		p := redistest.StartProxy(t, s.Addr())
		r.proxies, r.direct = append(r.proxies, p), append(r.direct, s.Client(t))
		addrs[name] = p.Addr()
	}
	r.Ring = redis.NewRing(&redis.RingOptions{
		Addrs:              addrs,
		HeartbeatFrequency: 50 * time.Millisecond,
		DisableIdentity:    true,
		MaxRetries:         -1,
	})
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// expectFrom checks that a message arrives whichever of these publishes it.
func expectFrom(t *testing.T, in *wake.Inbox, publishers ...*redis.Client) {
	t.Helper()
	w := in.Watch("k")
	defer w.Stop()
	for _, p := range publishers {
		send(t, p, in.Address(), "k", "from "+p.Options().Addr)
		receives(t, w, wake.Message{Body: "from " + p.Options().Addr})
	}
}

func TestInboxSubscribesToEveryShardOfARing(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	held := r.proxies[1].On(redistest.Command("subscribe"), redistest.HoldReply).Times(1)
	in := open(t, r.Ring)
	in.Start()
	<-held.Hit()
	awaitSubscriptions(t, r.proxies[0], 1)
	expect.Equal(t, "address while one shard's subscription is not confirmed", in.Address(), "")
	held.Release()
	awaitAddress(t, in)
	expectFrom(t, in, r.direct...)
}

func TestBrokenSubscriptionOfOneShardTakesTheAddressAway(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	in := listening(t, r.Ring)
	w := watch(t, in, "k")
	held := r.proxies[1].On(redistest.Command("subscribe"), redistest.Hold)
	r.proxies[1].Cut()
	receives(t, w, askAgain)
	awaitNoAddress(t, in)
	held.Remove()
	awaitAddress(t, in)
	receives(t, w, askAgain)
	expectFrom(t, in, r.direct...)
}

func TestInboxDoesWithoutAShardThatIsDownAndTakesItBack(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	in := listening(t, r.Ring)
	r.proxies[1].Refuse(true)
	awaitNoAddress(t, in)
	awaitAddress(t, in) // the ring has noticed
	expectFrom(t, in, r.direct[0])
	w := watch(t, in, "k")
	r.proxies[1].Refuse(false)
	receives(t, w, askAgain)
	redistest.Await(t, "both shards are subscribed", func() bool {
		return in.Address() != "" && subscribers(t, r.direct[1], in.Address()) == 1
	})
	w.Stop()
	expectFrom(t, in, r.direct...)
}

func TestReleaseEndsTheSubscriptionsOfAllShards(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	in, release := wake.Open(r.Ring, "test")
	in.Start()
	awaitAddress(t, in)
	address := in.Address()
	release()
	for _, rdb := range r.direct {
		redistest.Await(t, "the subscription ends", func() bool { return subscribers(t, rdb, address) == 0 })
	}
}

func TestMessageArrivesFromEveryNodeOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	in := listening(t, c.Client(t))
	for i := range 3 {
		rdb := c.Node(i).Client(t)
		w := in.Watch("k")
		redistest.Await(t, "a message", func() bool { // some are lost until the nodes have met
			expect.Must(t, rdb.Publish(t.Context(), in.Address(), "1:kbody").Err())
			select {
			case got := <-w.C:
				return got == wake.Message{Body: "body"} || got == askAgain // as two are
			default:
				return false
			}
		})
		w.Stop()
	}
}

func TestClusterInboxComesBackWhenItsSubscriptionIsKilled(t *testing.T) {
	t.Parallel()
	c := redistest.SharedCluster(t)
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.ClientName = "killed" })
	in := listening(t, rdb)
	w := watch(t, in, "k")
	killed := 0
	for i := range 3 {
		killed += killSubscriptions(t, c.Node(i).Client(t), "killed")
	}
	expect.Equal(t, "subscriptions killed, of the whole cluster", killed, 1)
	receives(t, w, askAgain)
	redistest.Await(t, "a message arrives", func() bool {
		expect.Must(t, rdb.Publish(t.Context(), in.Address(), "1:kbody").Err())
		select {
		case m := <-w.C:
			return m.Body == "body"
		default:
			return false
		}
	})
}
