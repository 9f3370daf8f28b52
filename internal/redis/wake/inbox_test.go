package wake_test

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestInboxHasNoAddressBeforeItsSubscriptionIsConfirmed(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	held := p.On(redistest.Command("subscribe"), redistest.HoldReply).Times(1)
	in := open(t, p.Client(t))
	expect.Equal(t, "address before Start", in.Address(), "")
	in.Start()
	<-held.Hit()
	expect.Equal(t, "address before the subscription is confirmed", in.Address(), "")
	held.Release()
	awaitAddress(t, in)
}

func TestOpenDoesNoIO(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	in, release := wake.Open(p.Client(t), "test")
	in.Watch("k").Stop()
	release()
	in.Start() // too late, and nothing to start any more
	expect.Equal(t, "commands", len(p.Commands()), 0)
}

func TestMessageReachesThoseWhoWatchItsKey(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := listening(t, rdb)
	a, b, other := watch(t, in, "k"), watch(t, in, "k"), watch(t, in, "other")
	send(t, rdb, in.Address(), "k", "body")
	receives(t, a, wake.Message{Body: "body"})
	receives(t, b, wake.Message{Body: "body"})
	fence(t, in, rdb)
	expectNothing(t, other)
	expectNothing(t, a)
}

func TestKeyAndBodyMayHoldAnyBytes(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := listening(t, rdb)
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	for _, key := range []string{string(all[:]), "3:abc", ":", "\xff\xfe", "ключ"} {
		w := watch(t, in, key)
		send(t, rdb, in.Address(), key, "body of "+string(all[:]))
		receives(t, w, wake.Message{Body: "body of " + string(all[:])})
	}
}

func TestWaiterThatFindsTwoMessagesMustAskAgain(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := listening(t, rdb)
	w := watch(t, in, "k")
	for range 3 {
		send(t, rdb, in.Address(), "k", "body")
	}
	fence(t, in, rdb)
	receives(t, w, askAgain)
	expectNothing(t, w)
	send(t, rdb, in.Address(), "k", "next")
	receives(t, w, wake.Message{Body: "next"})
}

func TestWaiterThatHasStoppedGetsNoMessage(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := listening(t, rdb)
	stopped, stays := in.Watch("k"), watch(t, in, "k")
	stopped.Stop()
	stopped.Stop()
	send(t, rdb, in.Address(), "k", "body")
	receives(t, stays, wake.Message{Body: "body"})
	expectNothing(t, stopped)
}

func TestWhatIsNoFrameIsIgnored(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := listening(t, rdb)
	w, empty := watch(t, in, "k"), watch(t, in, "")
	for _, payload := range []string{"", "k", "2:k", "-1:k", "0:", "0:k"} {
		expect.Must(t, rdb.Publish(t.Context(), in.Address(), payload).Err())
	}
	fence(t, in, rdb)
	expectNothing(t, w)
	expectNothing(t, empty)
}

func TestWaitersFromBeforeTheSubscriptionMustAskAgain(t *testing.T) {
	t.Parallel()
	in := open(t, shared.Client(t))
	w := watch(t, in, "k")
	in.Start()
	receives(t, w, askAgain)
	if in.Address() == "" {
		t.Error("told before there is an address")
	}
}

func TestUsersOfOneClientHaveOneSubscriptionUntilTheLastOneLeaves(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb, look := p.Client(t), shared.Client(t)
	a, releaseA := wake.Open(rdb, "test")
	b, releaseB := wake.Open(rdb, "test")
	a.Start()
	b.Start()
	a.Start()
	awaitAddress(t, a)
	address := a.Address()
	expect.Equal(t, "address of the same client and prefix", b.Address(), address)
	releaseA()
	releaseA()
	expect.Equal(t, "subscriptions while one user is left", subscribers(t, look, address), 1)
	w := watch(t, b, "k")
	send(t, look, address, "k", "body")
	receives(t, w, wake.Message{Body: "body"})
	releaseB()
	redistest.Await(t, "the subscription ends", func() bool { return subscribers(t, look, address) == 0 })
	expect.Equal(t, "address after the last user has left", b.Address(), "")
	expectSubscriptions(t, p, 1)
}

func TestClientsHaveInboxesOfTheirOwn(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	a, b := listening(t, rdb), listening(t, shared.Client(t))
	if a.Address() == b.Address() {
		t.Fatal("one address for two clients")
	}
	wa, wb := watch(t, a, "k"), watch(t, b, "k")
	send(t, rdb, b.Address(), "k", "body")
	receives(t, wb, wake.Message{Body: "body"})
	fence(t, a, rdb)
	expectNothing(t, wa)
}

func TestReleaseEndsAnInboxThatCannotSubscribe(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	lost := p.On(redistest.Command("subscribe"), redistest.SwallowReply)
	in, release := wake.Open(p.Client(t), "test")
	in.Start()
	<-lost.Hit()
	release()
}

func TestNoticesAreGivenOfEachMessageForTheirKeyUntilTheyAreStopped(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := listening(t, rdb)
	bodies := make(chan string, 8)
	stop := in.Notify("k", func(body string) { bodies <- body })
	in.Notify("other", func(string) { t.Error("notified of another key") })
	send(t, rdb, in.Address(), "k", "a")
	send(t, rdb, in.Address(), "k", "b")
	if a, b := <-bodies, <-bodies; a != "a" || b != "b" {
		t.Errorf("notified of %q and %q", a, b)
	}
	stop()
	stop()
	send(t, rdb, in.Address(), "k", "c")
	fence(t, in, rdb)
	expect.Equal(t, "notices after stop", len(bodies), 0)
}

func TestInboxesOfAllPrefixesShareASubscription(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb, look := p.Client(t), shared.Client(t)
	shop := listening(t, rdb)
	blog, releaseBlog := wake.Open(rdb, "blog")
	expect.Equal(t, "address that nobody subscribed to", blog.Address(), "")
	waits := watch(t, shop, "k")
	blog.Start()
	expect.Equal(t, "address while the new channel is not subscribed", shop.Address(), "")
	receives(t, waits, askAgain) // what was published meanwhile is lost
	awaitAddress(t, blog)
	if !strings.HasPrefix(blog.Address(), "blog:inbox:") || !strings.HasPrefix(shop.Address(), "test:inbox:") {
		t.Errorf("%q and %q do not begin with their prefixes", shop.Address(), blog.Address())
	}
	fence(t, blog, look) // the address can be seen before waiters are told
	drain(waits)
	send(t, look, blog.Address(), "k", "to blog")
	receives(t, waits, wake.Message{Body: "to blog"})
	releaseBlog()
	send(t, look, shop.Address(), "k", "to shop")
	receives(t, waits, wake.Message{Body: "to shop"})
	expectSubscriptions(t, p, 2) // one connection at a time, the second with both channels
}
