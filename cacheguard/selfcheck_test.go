package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestSelfCheckSucceedsBehindSentinel(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "SelfCheck", newFleet(t, onSentinel(t), 1, Config{}).guards[0].SelfCheck(redistest.Patiently(t)), nil)
}

func TestSelfCheckSucceedsWhereEverythingWorks(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, withLocal} {
		f := newFleet(t, standalone(t), 1, cfg)
		ctx := redistest.Patiently(t)
		for range 2 {
			expect.Equal(t, "SelfCheck", f.guards[0].SelfCheck(ctx), nil)
		}
		for _, key := range f.redis.Keys(ctx, f.guards[0].cfg.Prefix+"*").Val() {
			// A lock is remembered for a while, and the text of a failure for a moment: it may be gone by now.
			left := f.redis.PTTL(ctx, key).Val()
			if !((strings.HasSuffix(key, ":rw") || strings.HasSuffix(key, ":epoch")) && left > 0) && !(strings.HasSuffix(key, ":lease:error") && left != -1) {
				t.Errorf("%s is left", key)
			}
		}
		_ = f.guards[0].Close()
		expect.Equal(t, "closed", f.guards[0].SelfCheck(ctx), ErrClosed)
	}
}

// serviceAs returns a Guard with the Prefix shop, whose user may do what acl.Guard says, with the changes.
func serviceAs(t *testing.T, server *redistest.Server, changes ...string) *Guard {
	t.Helper()
	cfg := withLocal
	cfg.Prefix = "shop"
	return newGuard(t, server.Client(t, server.As(t, append(acl.Guard.ACL("shop"), changes...)...)), cfg)
}

func TestAUserWithTheDocumentedRightsCanDoEverything(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx := redistest.Patiently(t)
	a, b := serviceAs(t, server), serviceAs(t, server)
	expect.Equal(t, "SelfCheck", a.SelfCheck(ctx), nil)
	expect.Equal(t, "SelfCheck", b.SelfCheck(ctx), nil)
	sees := func(g *Guard, key, want string, how Outcome) {
		t.Helper()
		expect.Returns(t, want, how, nil)(get(ctx, g, key, returns("1")))
		redistest.Await(t, "what was loaded is stored", func() bool { return g.flights.Count(nil).Published == 0 })
	}
	sees(a, "k", "1", Loaded)
	sees(b, "k", "1", Hit)
	redistest.Await(t, "an echo is back", func() bool { return b.local.IsInformed("k") })
	sees(b, "k", "1", Local)
	if got, err := GetMany(ctx, a, []string{"k", "l", "m"}, func(_ context.Context, keys []string) (map[string]string, error) {
		return map[string]string{"l": "2", "m": "3"}, nil
	}); err != nil || got["l"] != "2" || got["m"] != "3" {
		t.Errorf("GetMany: %v, %v", got, err)
	}
	expect.Equal(t, "Update", a.Update(ctx, "k", func(context.Context) error { return nil }), nil)
	sees(a, "k", "1", Loaded)
	mustInvalidate(t, a, "k")
	sees(a, "k", "1", Loaded)
	failing := errors.New("no")
	redistest.Await(t, "the failure is remembered", func() bool {
		_, err := Get(ctx, a, "failing", func(context.Context) (string, error) { return "", failing })
		expect.ErrorIs(t, err, failing)
		return prolongFailure(server.Client(t), protocol.LeaseKey(a.keys.ValueKey("failing")))
	})
	var remembered *LoadError
	if _, err := Get(ctx, b, "failing", unwanted[string](t)); !errors.As(err, &remembered) {
		t.Errorf("b does not know of the failure: %v", err)
	}
	src := newSource("pushed")
	loaded := async(a, "slow", src.load)
	<-src.begun
	waits := async(b, "slow", src.load)
	redistest.Await(t, "b is registered", func() bool {
		fields := server.Client(t).HGetAll(ctx, protocol.LeaseKey(b.keys.ValueKey("slow"))).Val()
		return fields["inbox:"+b.inbox.Channel()] != ""
	})
	close(src.release)
	want(t, loaded, "pushed")
	want(t, waits, "pushed")
	expect.Equal(t, "loads", src.loads.Load(), 1)
}

func TestSelfCheckNamesWhatIsRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for changes, want := range map[string]string{
		"":                                     "",
		"-hgetall -hset":                       "HGETALL, HSET",
		"-mget":                                "MGET",
		"-time":                                "TIME",
		"-publish":                             `PUBLISH on the channel "shop:inbox:`,
		"-subscribe":                           `SUBSCRIBE on the channel "shop:inbox:`,
		"resetchannels &shop:invalidated":      `the channel "shop:inbox:`,
		"resetchannels &shop:inbox:*":          `the channel "shop:invalidated"`,
		"resetkeys ~other:*":                   `keys such as "shop:{`,
		"-eval -evalsha":                       "EVAL, EVALSHA",
		"+@all -@write":                        "HSET",
		"resetkeys ~shop:* +@all -@connection": "",
	} {
		expect.Beside(t, changes, func(t *testing.T) {
			err := serviceAs(t, server, strings.Fields(changes)...).SelfCheck(redistest.Patiently(t))
			if want == "" {
				expect.Equal(t, "SelfCheck", err, nil)
			} else if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%v, want word of %q", err, want)
			}
		})
	}
}

// With the defaults of go-redis, which dials and asks again and again.
func TestSelfCheckSaysWhyRedisCannotBeUsedInsteadOfWaiting(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	expect.Equal(t, "config", server.Client(t).ConfigSet(t.Context(), "requirepass", "secret").Err(), nil)
	refuse := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} // a port that nobody listens at may soon be another test's
	}
	type example struct {
		options redis.Options
		want    string
	}
	expect.Each(t, map[string]example{
		"refused":        {redis.Options{Dialer: refuse}, "connection refused"},
		"no password":    {redis.Options{Addr: server.Addr()}, "NOAUTH"},
		"wrong password": {redis.Options{Addr: server.Addr(), Password: "wrong"}, "WRONGPASS"},
	}, func(t *testing.T, _ string, c example) {
		rdb := redis.NewClient(&c.options)
		t.Cleanup(func() { _ = rdb.Close() })
		err := newGuard(t, rdb, Config{}).SelfCheck(redistest.Patiently(t))
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want word of %q", err, c.want)
		}
	})
}

func TestSelfCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, withLocal)
	f.listening()
	rule := proxy.On(redistest.Command("publish"), redistest.SwallowReply)
	defer rule.Remove()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.guards[0].SelfCheck(ctx) }()
	<-rule.Hit()
	cancel()
	if err := <-done; err == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestSelfCheckDoesNotTakeALostSubscriptionForAMessage(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	f.listening()
	proxy.BlackHoleSubscribers(true)
	defer proxy.BlackHoleSubscribers(false)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.guards[0].checks().Messages(ctx) }()
	redistest.Await(t, "the loss to be seen", func() bool { return f.guards[0].inbox.Address() == "" })
	cancel()
	expect.Says(t, <-done, "did not arrive")
}

func TestAUserWithTheDocumentedRightsCanUseACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 0)
	rules := []any{"acl", "setuser", "service", "on", ">secret"}
	for _, rule := range acl.Guard.ACL("shop") {
		rules = append(rules, rule)
	}
	for _, command := range acl.Cluster() {
		rules = append(rules, "+"+strings.ToLower(command))
	}
	for i := range 3 {
		expect.Equal(t, "acl", cluster.Node(i).Client(t).Do(t.Context(), rules...).Err(), nil)
	}
	cfg := withLocal
	cfg.Prefix = "shop"
	g := newGuard(t, cluster.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "service", "secret" }), cfg)
	expect.Equal(t, "SelfCheck", g.SelfCheck(redistest.Patiently(t)), nil)
	for _, key := range []string{"a", "b", "c", "d", "e"} { // on all nodes
		expect.Returns(t, "1", Loaded, nil)(get(t.Context(), g, key, returns("1")))
	}
}

func TestSelfCheckBlamesNothingThatWasNotRefusedWhereRedisIsSlow(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	g := newFleetOn(t, shared.Client(t), Config{}, proxy.Client(t)).guards[0]
	expect.Equal(t, "error", g.SelfCheck(redistest.Patiently(t)), nil)
	proxy.Delay(200 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := g.SelfCheck(ctx)
	expect.ErrorIs(t, err, context.DeadlineExceeded)
	expect.Says(t, err, "redis is slow, as a round trip takes ", "nothing was refused")
	proxy.Delay(0)
	proxy.BlackHole(true)
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	expect.Says(t, g.SelfCheck(ctx), "redis does not answer")
	proxy.BlackHole(false)
	proxy.Cut() // nobody has to wait for the time-outs of the client
}

// Also for a user who may not ask: a server says its version when a connection begins.
func TestSelfCheckNamesTheServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	version := server.Info("server")["redis_version"]
	if v := server.Info("server")["valkey_version"]; v != "" {
		version = v
	} else if v := server.Info("server")["redict_version"]; v != "" {
		version = v
	}
	var log bytes.Buffer
	few := server.As(t, acl.Guard.ACL("shop")...)
	g := newGuard(t, server.Client(t, few), Config{Prefix: "shop", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	expect.ErrorIs(t, g.SelfCheck(redistest.Patiently(t)), nil)
	expect.ErrorIs(t, g.Close(), nil) // nobody writes to the log after it
	expect.Says(t, log.String(), "self-check passed", version+", standalone")
	poorer := server.As(t, append(acl.Guard.ACL("shop"), "-mget")...)
	if err := newGuard(t, server.Client(t, poorer), Config{Prefix: "shop"}).SelfCheck(redistest.Patiently(t)); err == nil ||
		!strings.Contains(err.Error(), "self-check of ") || !strings.Contains(err.Error(), version+", standalone: ") {
		t.Errorf("the error does not name the server %s: %v", version, err)
	}
}
