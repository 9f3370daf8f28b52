package redistest_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestProxyPassesMessagesBetweenReplies(t *testing.T) {
	both(t, func(t *testing.T, protocol func(*redis.Options)) {
		p := redistest.StartProxy(t, shared.Addr())
		sub := subscribe(t, p.Client(t, protocol), "a", "b")
		for range 3 {
			publish(t, "a")
			if err := sub.Ping(t.Context(), "ping"); err != nil {
				t.Fatal(err)
			}
			expect(t, sub, "message a")
			expect(t, sub, "pong ping")
		}
		if err := sub.Unsubscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
		receive(t, sub)
		receive(t, sub)
		if err := sub.Subscribe(t.Context(), t.Name()+"c"); err != nil {
			t.Fatal(err)
		}
		expect(t, sub, "subscribe c")
	})
}

func TestProxyHoldsAMessageBackNoLongerThanTheReplyBeforeIt(t *testing.T) {
	both(t, func(t *testing.T, protocol func(*redis.Options)) {
		p := redistest.StartProxy(t, shared.Addr())
		rule := p.On(redistest.Command("ping"), redistest.HoldReply)
		sub := subscribe(t, p.Client(t, protocol), "a")
		if err := sub.Ping(t.Context(), "ping"); err != nil {
			t.Fatal(err)
		}
		await(t, rule.Hit())
		publish(t, "a")
		rule.Release()
		expect(t, sub, "pong ping")
		expect(t, sub, "message a")
	})
}

func TestProxyDropsTheConfirmationOfASubscription(t *testing.T) {
	both(t, func(t *testing.T, protocol func(*redis.Options)) {
		p := redistest.StartProxy(t, shared.Addr())
		rule := p.On(redistest.Command("subscribe"), redistest.DropReply).Times(1)
		sub := p.Client(t, protocol).Subscribe(t.Context(), t.Name())
		t.Cleanup(func() { _ = sub.Close() })
		if msg, err := sub.Receive(t.Context()); err == nil {
			t.Errorf("received %v", msg)
		}
		if rule.Count() != 1 {
			t.Errorf("%d hits, want 1", rule.Count())
		}
	})
}

func TestProxyBlackHoleForSubscribersSparesOthers(t *testing.T) {
	both(t, func(t *testing.T, protocol func(*redis.Options)) {
		p := redistest.StartProxy(t, shared.Addr())
		rdb := p.Client(t, protocol)
		sub := subscribe(t, rdb, "a")
		p.BlackHoleSubscribers(true)
		publish(t, "a")
		set(t, rdb, t.Name())
		// The reply to a PING comes after the message on the same connection, and is swallowed too.
		seen := p.On(redistest.Command("ping"), redistest.HoldReply).Times(1)
		if err := sub.Ping(t.Context(), "lost"); err != nil {
			t.Fatal(err)
		}
		await(t, seen.Hit())
		seen.Release()
		again := p.On(redistest.Command("ping"), redistest.HoldReply).Times(1)
		if err := sub.Ping(t.Context(), "heard"); err != nil {
			t.Fatal(err)
		}
		await(t, again.Hit())
		p.BlackHoleSubscribers(false)
		again.Release()
		expect(t, sub, "pong heard")
	})
}

// subscribe returns when the channels, whose names begin with the test's, are subscribed to.
func subscribe(t *testing.T, rdb *redis.Client, channels ...string) *redis.PubSub {
	t.Helper()
	var names []string
	for _, c := range channels {
		names = append(names, t.Name()+c)
	}
	sub := rdb.Subscribe(t.Context(), names...)
	t.Cleanup(func() { _ = sub.Close() })
	for _, c := range channels {
		expect(t, sub, "subscribe "+c)
	}
	return sub
}

func publish(t *testing.T, channel string) {
	t.Helper()
	if n, err := shared.Client(t).Publish(t.Context(), t.Name()+channel, "hello").Result(); n != 1 {
		t.Fatalf("PUBLISH reached %d subscribers, %v", n, err)
	}
}

func receive(t *testing.T, sub *redis.PubSub) any {
	t.Helper()
	msg, err := sub.ReceiveTimeout(t.Context(), awaitTimeout)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func expect(t *testing.T, sub *redis.PubSub, want string) {
	t.Helper()
	var got string
	switch msg := receive(t, sub).(type) {
	case *redis.Subscription:
		got = fmt.Sprintf("%s %s", msg.Kind, msg.Channel[len(t.Name()):])
	case *redis.Message:
		got = "message " + msg.Channel[len(t.Name()):]
	case *redis.Pong:
		got = "pong " + msg.Payload
	}
	if got != want {
		t.Fatalf("received %q, want %q", got, want)
	}
}
