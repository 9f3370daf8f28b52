package wake_test

import (
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// breaking holds the next subscription at the proxy, breaks the one that stands, and checks what waiters see of it.
func breaking(t *testing.T, p *redistest.Proxy, in *wake.Inbox, breakIt func()) {
	t.Helper()
	look := shared.Client(t)
	waiters := []*wake.Waiter{watch(t, in, "a"), watch(t, in, "a"), watch(t, in, "b")}
	address := in.Address()
	held := p.On(redistest.Command("subscribe"), redistest.Hold)
	breakIt()
	for _, w := range waiters {
		receives(t, w, askAgain)
	}
	awaitNoAddress(t, in)
	for _, w := range waiters {
		drain(w)
	}
	held.Remove()
	awaitAddress(t, in)
	for _, w := range waiters {
		receives(t, w, askAgain)
	}
	expect.Equal(t, "address", in.Address(), address)
	fence(t, in, look)
	expectDelivery(t, in, "a")
}

// expectDelivery sends a message to a new waiter.
func expectDelivery(t *testing.T, in *wake.Inbox, key string) {
	t.Helper()
	w := in.Watch(key)
	defer w.Stop()
	send(t, shared.Client(t), in.Address(), key, "body")
	receives(t, w, wake.Message{Body: "body"})
}

func TestWaitersAskAgainWhenTheSubscriptionIsCutAndWhenItStandsAnew(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	breaking(t, p, listening(t, p.Client(t)), p.Cut)
}

func TestWaitersAskAgainWhenTheServerKillsTheSubscription(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := listening(t, shared.Client(t, func(o *redis.Options) { o.ClientName = "killed" }))
	w := watch(t, in, "k")
	for range 3 {
		expect.Equal(t, "subscriptions killed", killSubscriptions(t, rdb, "killed"), 1)
		receives(t, w, askAgain)
		redistest.Await(t, "the subscription is back", func() bool {
			return in.Address() != "" && subscribers(t, rdb, in.Address()) == 1
		})
		fence(t, in, rdb)
		drain(w)
	}
}

func TestInboxComesBackAfterTheServerWasDown(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	in := listening(t, p.Client(t))
	w := watch(t, in, "k")
	p.Refuse(true)
	awaitNoAddress(t, in)
	receives(t, w, askAgain)
	expectNothing(t, w)
	p.Refuse(false)
	receives(t, w, askAgain)
	if in.Address() == "" {
		t.Error("told before there is an address")
	}
	expectDelivery(t, in, "k")
}

func TestInboxSubscribesWhenTheServerComesUp(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	p.Refuse(true)
	in := open(t, p.Client(t))
	in.Start()
	p.Refuse(false)
	awaitAddress(t, in)
	expectDelivery(t, in, "k")
}

// A connection that is dead and does not say so: no end, no message.
func TestSubscriptionThatFallsSilentIsReplaced(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	in := listening(t, p.Client(t))
	w := watch(t, in, "k")
	w.Waiting()
	p.BlackHoleSubscribers(true)
	awaitSubscriptions(t, p, 2)
	receives(t, w, askAgain)
	p.BlackHoleSubscribers(false)
	awaitAddress(t, in)
	expectDelivery(t, in, "k")
}

// mute returns an inbox that no probe gets to, whose first subscription has ended for that.
func mute(t *testing.T) (p *redistest.Proxy, in *wake.Inbox, rule *redistest.Rule) {
	t.Helper()
	p = redistest.StartProxy(t, shared.Addr())
	in = listening(t, p.Client(t))
	watch(t, in, "k").Waiting()
	rule = p.On(redistest.Command("publish"), redistest.Hold)
	t.Cleanup(rule.Remove)
	awaitNoAddress(t, in)
	return p, in, rule
}

// Each new subscription is confirmed, and brings nothing either.
func TestConfirmationsDoNotStandInForMessages(t *testing.T) {
	t.Parallel()
	p, in, rule := mute(t)
	var back atomic.Int64
	defer in.OnLive(func(live bool, _ error) {
		if live {
			back.Add(1)
		}
	})()
	before := back.Load()
	awaitSubscriptions(t, p, 4)
	if n := back.Load() - before; n > 0 {
		t.Errorf("it counted %d times", n)
	}
	rule.Remove()
	awaitAddress(t, in)
	expectDelivery(t, in, "k")
}

// Nothing can be learned there.
func TestASubscriptionCountsWhoseProbesAreRefusedFromThenOn(t *testing.T) {
	t.Parallel()
	p, in, rule := mute(t)
	p.On(redistest.Command("publish"), redistest.ReplyError("NOPERM no"))
	rule.Remove()
	awaitAddress(t, in)
	expectDelivery(t, in, "k")
}

// Neither the subscription nor anything else gets through, and no new connection can be made.
func TestInboxIsNotLiveBehindABlackHole(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	in := listening(t, p.Client(t))
	listen(t, in, t.Name())
	awaitLive(t, in)
	p.BlackHole(true)
	redistest.Await(t, "the inbox is not live", func() bool { return !in.Live() })
	p.Cut()
	p.BlackHole(false)
	awaitLive(t, in)
	expectDelivery(t, in, "k")
}

func TestSubscriptionThatIsNeverConfirmedIsTriedAgain(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	p.On(redistest.Command("subscribe"), redistest.SwallowReply).Times(1)
	in := open(t, p.Client(t))
	in.Start()
	awaitAddress(t, in)
	expectDelivery(t, in, "k")
	expectSubscriptions(t, p, 2)
}

// Messages come all the time, on a connection that lost the confirmation.
func TestMessagesDoNotStandInForTheConfirmation(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	lost := p.On(redistest.Command("subscribe"), redistest.LoseReply).Times(1)
	in, look := open(t, p.Client(t)), shared.Client(t)
	in.Start()
	<-lost.Hit()
	redistest.Await(t, "an address, though messages come", func() bool {
		send(t, look, in.Channel(), "nobody's", "")
		return in.Address() != ""
	})
	expectDelivery(t, in, "k")
}

func TestSubscriptionThatBringsItsProbesIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	in := listening(t, p.Client(t))
	w := watch(t, in, "k")
	w.Waiting()
	redistest.Await(t, "two probes", func() bool { return p.Commands()["publish"] >= 2 })
	expectSubscriptions(t, p, 1)
	expectNothing(t, w)
}

func TestSubscriptionIsLeftAloneWhenTheProbeCannotBePublished(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	in := listening(t, p.Client(t))
	w := watch(t, in, "k")
	w.Waiting()
	p.On(redistest.Command("publish"), redistest.ReplyError("NOPERM no")) // an ACL may forbid it
	redistest.Await(t, "two probes", func() bool { return p.Commands()["publish"] >= 2 })
	expectSubscriptions(t, p, 1)
	expectDelivery(t, in, "k")
}
