package script_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// publishing makes a script that publishes twice, and ends with this text.
func publishing(end string) *script.Script {
	return script.New("publish(KEYS[1], ARGV[1])\npublish(KEYS[1], ARGV[2])\n" + end + " -- " + rand.Text())
}

// subscribe returns a function that waits for the next message on the channel.
func subscribe(t *testing.T, channel string) (next func() string) {
	t.Helper()
	sub := shared.Client(t).Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() string {
		m, err := sub.ReceiveMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m.Payload
	}
}

func TestWhatAServerRefusesToPublishWithinAScriptItsProcessPublishes(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]*redis.Client{"refused": redistest.WithoutPublish(shared.Client(t)), "published": shared.Client(t)} {
		for way, run := range map[string]func(c *script.Call) *redis.Cmd{
			"alone":      func(c *script.Call) *redis.Cmd { return c.Run(t.Context(), rdb) },
			"a pipeline": func(c *script.Call) *redis.Cmd { return script.RunAll(t.Context(), rdb, []*script.Call{c})[0] },
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				channel := rand.Text()
				next := subscribe(t, channel)
				expect(t, run(call(publishing("return {KEYS[1], ARGV[1]}"), channel, "a", "\x00b")), channel, "a")
				if got := []string{next(), next()}; !slices.Equal(got, []string{"a", "\x00b"}) {
					t.Errorf("it heard %q", got)
				}
				if got := run(call(publishing("return 7"), channel, "a", "b")); got.Err() != nil || got.Val() != int64(7) {
					t.Errorf("%v, %v; want 7", got.Val(), got.Err())
				}
				for _, end := range []string{"return nil", "return false", "KEYS[2] = 1"} {
					if err := run(call(publishing(end), channel, "a", "b")).Err(); !errors.Is(err, redis.Nil) {
						t.Errorf("%s: %v; want nothing", end, err)
					}
				}
				if err := run(call(publishing("return redis.error_reply('OUCH')"), channel, "a", "b")).Err(); !script.Says(err, "OUCH") {
					t.Errorf("%v; want the script's own error", err)
				}
			})
		}
	}
}

// A refused message costs one request more, and no other script any.
func TestOnlyARefusedMessageCostsACommandMore(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t)
	silent := redistest.WithoutPublish(p.Client(t))
	run := func(rdb *redis.Client, s *script.Script) {
		if err := call(s, rand.Text(), "a", "b").Run(context.Background(), rdb).Err(); err != nil {
			t.Error(err)
		}
	}
	run(rdb, publishing("return 1"))
	run(silent, unknown())
	if n := p.Commands()["publish"]; n != 0 {
		t.Errorf("%d messages, want none", n)
	}
	run(silent, publishing("return 1"))
	if n := p.Commands()["publish"]; n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}
