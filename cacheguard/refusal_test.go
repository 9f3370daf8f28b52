package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// opsOf are the operations of the lines with the text.
func opsOf(log, text string) (ops []string) {
	for _, line := range lines(log, text) {
		for _, op := range regexp.MustCompile(` op=(\w+)`).FindAllStringSubmatch(line, -1) {
			ops = append(ops, op[1])
		}
	}
	slices.Sort(ops)
	return slices.Compact(ops)
}

// Whatever was refused, its end has a line, too: an operation that is new, and does not say when it succeeds, has none.
func TestEachOperationThatWasRefusedHasALineWhenThatIsOver(t *testing.T) {
	t.Parallel()
	ctx, proxy := context.Background(), redistest.StartProxy(t, shared.Addr())
	cfg, log := logged()
	cfg.Limiter, cfg.Local = permitsOf(10), LocalConfig{MaxEntries: 100, MaxLag: time.Second}
	f := newFleetOn(t, shared.Client(t), cfg, proxy.Client(t))
	f.events.quiet = true
	g, round := f.guards[0], 0
	all := func() {
		round++
		key := func(kind string) string { return fmt.Sprint(kind, round) }
		_, _ = Get(ctx, g, key("loaded"), returns("v"))
		_, _ = Get(ctx, g, "local", returns("v"))
		_, _ = Get(ctx, g, key("failing"), func(context.Context) (string, error) { return "", errors.New("down") })
		_ = g.Invalidate(ctx, key("invalidated"))
		_ = g.InvalidateTags(ctx, key("tag"))
		_ = g.Update(ctx, key("updated"), func(context.Context) error { return nil })
		if in, err := g.Intend(ctx, Changes{Keys: []string{key("intended")}}); err == nil {
			_ = in.Done(ctx)
		}
		_, _ = Get(ctx, g, "local", returns("v"))
	}
	all()
	await := func(what string, done func() bool) {
		t.Helper()
		redistest.Await(t, what, func() bool {
			all()
			time.Sleep(100 * time.Millisecond) // so that a minute of them is not too many
			return done()
		})
	}
	for _, phase := range []struct {
		ops   []string
		match redistest.Match
	}{
		{[]string{"fail", "fill"}, func(args []string) bool { return scriptOf("fill")(args) || scriptOf("fail")(args) }},
		{[]string{"get"}, redistest.Command("mget")},
		{[]string{"acquire", "echo", "intend", "invalidate", "permit", "update"}, func(args []string) bool { return strings.HasPrefix(args[0], "eval") }},
	} {
		rule := proxy.On(phase.match, redistest.ReplyError("OOM command not allowed"))
		await(fmt.Sprint("they are refused: ", phase.ops), func() bool {
			began := opsOf(log(), "redis failed")
			return !slices.ContainsFunc(phase.ops, func(op string) bool { return !slices.Contains(began, op) })
		})
		rule.Remove()
	}
	began := opsOf(log(), "redis failed")
	await("all is over", func() bool { return slices.Equal(opsOf(log(), "redis refuses no more"), began) })
}

// A lock's script ends itself where a command fails.
func TestARefusalWithinAnUpdatesLockIsAsRedisSaysIt(t *testing.T) {
	t.Parallel()
	f := newFleetOn(t, shared.Client(t), Config{}, shared.Client(t, shared.As(t, "~*", "&*", "+@all", "-hset")))
	f.events.quiet = true
	err := f.guards[0].Update(t.Context(), "k", func(context.Context) error { return nil })
	if text := fmt.Sprint(err); !strings.Contains(text, "NOPERM") || strings.Contains(text, "ERR ERR") {
		t.Error(text)
	}
}

// The subscription stands, and what is published does not arrive: Stats says so, and the log.
func TestAUserWhoMayNotPublishHasLostTheSubscription(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "&*", "+@all")
	cfg, log := logged()
	cfg.Local = LocalConfig{MaxEntries: 10, MaxLag: time.Second}
	g := newGuard(t, s.Client(t, redistest.User("app", "secret")), cfg)
	await := func(text string) {
		t.Helper()
		redistest.Await(t, text, func() bool {
			mustGet(t, g, "k", returns("v"))
			return strings.Contains(log(), text)
		})
	}
	redistest.Await(t, "messages arrive", func() bool {
		mustGet(t, g, "k", returns("v"))
		return g.inbox.Live()
	})
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "-publish")
	await("subscription lost")
	expectIn(t, lines(log(), "subscription lost")[0], "NOPERM", "`cacheguardctl check`, as this user, names it") // Redis does not, within a script
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "+publish")
	await("subscription back")
	await("redis refuses no more")
}

// A Locker is used for the first time, and there is another subscription, with its channel.
func TestALocalTierThatIsDroppedForANewChannelIsNoNews(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	cfg, log := logged()
	cfg.Local = LocalConfig{MaxEntries: 10}
	g := newGuard(t, rdb, cfg)
	awaitKept := func() {
		redistest.Await(t, "it is kept", func() bool {
			mustGet(t, g, "k", returns("v"))
			return g.local.Has("k")
		})
	}
	awaitKept()
	locks, err := mutex.New(rdb, mutex.Config{Prefix: "jobs"})
	expect.ErrorIs(t, err)
	defer locks.Close()
	lease, err := locks.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, lease.Unlock(t.Context()))
	redistest.Await(t, "its channel is subscribed", func() bool {
		channels, err := rdb.PubSubChannels(t.Context(), "jobs:*").Result()
		return err == nil && len(channels) == 1
	})
	awaitKept()
	expect.Equal(t, "lines", len(lines(log(), "local tier dropped")), 0)
	expect.Equal(t, "subscriptions", s.Client(t).ClientKillByFilter(t.Context(), "TYPE", "pubsub").Val(), 1)
	redistest.Await(t, "trouble is logged", func() bool { return len(lines(log(), "local tier dropped")) == 1 })
}
