package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redis/acl"
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
		rule := proxy.On(phase.match, redistest.ReplyError("UNWILLING to do so"))
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
	expect.Says(t, lines(log(), "subscription lost")[0], "NOPERM", "`cacheguardctl check`, as this user, names it") // Redis does not, within a script
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

// pasted is the line of docs/redis.md that makes the user of a Guard.
func pasted(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/redis.md")
	expect.ErrorIs(t, err, nil)
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "    ACL SETUSER service on") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("docs/redis.md has no line that makes a user")
	return ""
}

func TestTheUserOfTheDocumentationCanBePasted(t *testing.T) {
	t.Parallel()
	line := "ACL SETUSER service on >PASSWORD " + strings.Join(acl.Guard.ACL("shop"), " ")
	expect.Equal(t, "the line of docs/redis.md", pasted(t), line)
	server := redistest.Start(t)
	var args []any
	for _, word := range strings.Fields(pasted(t)) {
		args = append(args, word)
	}
	admin := server.Client(t)
	expect.ErrorIs(t, admin.Do(t.Context(), args...).Err(), nil)
	rdb := server.Client(t, redistest.User("service", "PASSWORD"))
	expect.ErrorIs(t, newGuard(t, rdb, Config{Prefix: "shop"}).SelfCheck(redistest.Patiently(t)), nil)
	for _, command := range []string{"config get maxmemory", "client list", "info", "command", "script flush", "keys *", "acl whoami"} {
		args = nil
		for _, word := range strings.Fields(command) {
			args = append(args, word)
		}
		if err := rdb.Do(t.Context(), args...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// withMute is a fleet whose first instance may not publish, in scripts or by itself, with leases that nobody can wait for.
func withMute(t *testing.T) *fleet {
	s := redistest.Start(t)
	return newFleetOn(t, s.Client(t), Config{RedisTimeout: brisk, LeaseTTL: time.Hour},
		s.Client(t, s.As(t, "~*", "&*", "+@all", "-publish")), s.Client(t), s.Client(t)).listening()
}

func TestWhoeverWaitsForAnInstanceThatMayNotPublishDoesNotWaitForTheEndOfItsLease(t *testing.T) {
	t.Parallel()
	f := withMute(t)
	f.wakesAWaiter()
	f.wakesAReader()
}

func TestAnInvalidationByAnInstanceThatMayNotPublishLeavesNoWaiterWaiting(t *testing.T) {
	t.Parallel()
	f := withMute(t)
	db := newSource("old")
	leader := async(f.guards[1], "k", db.load)
	<-db.begun
	waiter := async(f.guards[2], "k", returns("new"))
	f.awaitRegistered("k", 1)
	mustInvalidate(t, f.guards[0], "k") // with the lease go the inboxes that were in it
	want(t, waiter, "new")
	close(db.release)
	want(t, leader, "old")
}

// deafGuard returns a Guard with a local tier, and its log. Its Redis user may at first use no channels of the prefixes.
func deafGuard(t *testing.T, rdb Redis) (g *Guard, log func() string) {
	t.Helper()
	cfg, log := logged()
	cfg.Prefix, cfg.Local = "shop", LocalConfig{MaxEntries: 10}
	g = newGuard(t, rdb, cfg)
	return g, log
}

func TestASubscriptionThatWasNeverAllowedIsLoggedOnceWithTheReason(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "resetchannels", "+@all")
	g, log := deafGuard(t, s.Client(t, redistest.User("app", "secret")))
	expect.Equal(t, "needs no messages yet", g.Stats().Subscribed, true)
	mustGet(t, g, "k", returns("v"))
	redistest.Await(t, "the log says so", func() bool { return strings.Contains(log(), "cannot subscribe") })
	expect.Equal(t, "subscribed", g.Stats().Subscribed, false)
	expect.Says(t, log(), "NOPERM", "shop:invalidated", "shop:inbox:")
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "&*")
	redistest.Await(t, "the log says that it is over", func() bool { return strings.Contains(log(), "subscription established") })
	expect.Equal(t, "subscribed", g.Stats().Subscribed, true)
	expect.Equal(t, "lines", len(lines(log(), "cannot subscribe"))+len(lines(log(), "subscription established")), 2)

	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "resetchannels") // ends the connections, too
	redistest.Await(t, "one that was there is lost", func() bool { return strings.Contains(log(), "subscription lost") })
}

// Everything that uses a client shares one subscription, and Redis refuses all of its channels or none.
func TestAChannelOfALockThatIsRefusedIsNamedInTheGuardsLog(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Client(t).Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "resetchannels", "&shop:*", "+@all")
	rdb := s.Client(t, redistest.User("app", "secret"))
	g, log := deafGuard(t, rdb)
	mustGet(t, g, "k", returns("v"))
	redistest.Await(t, "messages arrive", g.inbox.Live)
	jobs, err := mutex.New(rdb, mutex.Config{Prefix: "jobs"})
	expect.ErrorIs(t, err)
	defer jobs.Close()
	lease, err := jobs.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	redistest.Await(t, "the log names it", func() bool { return strings.Contains(log(), "jobs:inbox:") })
	expect.ErrorIs(t, lease.Unlock(t.Context()))
}
