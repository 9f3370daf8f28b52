package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// broken is a fleet of two. Guard 0 reaches Redis through a proxy. The server knows the scripts.
func broken(t *testing.T, server *redistest.Server, cfg Config, tweaks ...func(*redis.Options)) (*fleet, *redistest.Proxy) {
	t.Helper()
	proxy := redistest.StartProxy(t, server.Addr())
	f := newFleetOn(t, server.Client(t), cfg, proxy.Client(t, tweaks...), server.Client(t))
	cfg.RedisTimeout, cfg.LeaseTTL, cfg.UpdateTimeout = 0, 0, 0 // who makes the scripts known has patience
	warm(t, newFleetOn(t, server.Client(t), cfg, server.Client(t)))
	return f, proxy
}

// patienceFor is a RedisTimeout that the fault exceeds if it can, and nothing else.
func patienceFor(fault redistest.Fault) time.Duration {
	switch fault {
	case redistest.SwallowReply, redistest.Hold, redistest.HoldReply:
		return brisk
	}
	return bearing
}

// held reports whether somebody has the key's lease.
func (f *fleet) held(key string) bool {
	f.t.Helper()
	held, err := f.redis.HExists(context.Background(), f.lease(key), "token").Result()
	expect.Must(f.t, err)
	return held
}

var steps = map[string]redistest.Match{
	"get":     reading,
	"acquire": scriptOf("acquire"),
	"fill":    scriptOf("fill"),
}

// The client sends a command again when the connection broke, whether the server had run it or not.
func TestACommandThatIsSentTwiceDoesNoHarm(t *testing.T) {
	t.Parallel()
	for name, step := range steps {
		for _, fault := range []redistest.Fault{redistest.DropReply, redistest.CutBefore} {
			expect.Beside(t, name+", "+string(fault), func(t *testing.T) {
				f, proxy := broken(t, shared, Config{LeaseTTL: time.Minute})
				rule := proxy.On(step, fault).Times(1)
				expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("v")), "v")
				<-rule.Hit()
				expect.Equal(t, "value elsewhere", mustGet(t, f.guards[1], "k", unwanted[string](t)), "v")
				expect.Equal(t, "loads", f.events.loads.Load(), 1)
				expect.Equal(t, "rejected", f.events.rejected.Load(), 0)
				expect.Equal(t, "held", f.held("k"), false)
			})
		}
	}
}

// Whatever error meets which step, a finished load reaches its callers, and nothing is stuck or stale afterwards.
func TestEveryErrorAtEveryStep(t *testing.T) {
	t.Parallel()
	faults := []redistest.Fault{
		redistest.SwallowReply, redistest.HoldReply, // the server acts, and the time-out comes
		redistest.Hold, // the time-out comes before the server acts
		redistest.DropReply, redistest.CutBefore,
	}
	for _, message := range []string{
		"OOM command not allowed when used memory > 'maxmemory'.",
		"READONLY You can't write against a read only replica.",
		"LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down",
		"CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys request during rehashing of slot",
		"BUSY Redis is busy running a script.", "MISCONF Errors writing to the AOF file", "NOSCRIPT No matching script.",
		"MOVED 1 127.0.0.1:1", "NOPERM this user has no permissions", "ERR anything",
	} {
		faults = append(faults, redistest.ReplyError(message))
	}
	for name, s := range everyStep {
		for _, fault := range faults {
			if !expect.Drawn(3) {
				continue
			}
			expect.Beside(t, name+", "+string(fault), func(t *testing.T) {
				f, proxy := broken(t, shared, Config{RedisTimeout: patienceFor(fault), LeaseTTL: 400 * time.Millisecond}) // it may be lost
				f.listening()
				rule := proxy.On(s.match, fault)
				s.do(t, f, rule)
				rule.Remove()
				redistest.Await(t, "the lease is free", func() bool {
					left, err := f.redis.HMGet(context.Background(), f.lease("k"), "token").Result()
					return err == nil && left[0] == nil || f.expired("k")
				})
				for i, g := range f.guards {
					redistest.Await(t, fmt.Sprintf("guard %d has the new value", i), func() bool {
						v, err := Get(context.Background(), g, "k", returns("new"))
						return err == nil && v == "new" && f.guards[i].writes.Pending() == 0
					})
				}
			})
		}
	}
}

// everyStep lists the operations on Redis: for each, what makes guard 0 run it, and what is promised then.
var everyStep = map[string]struct {
	match redistest.Match
	do    func(*testing.T, *fleet, *redistest.Rule)
}{
	"get":     {steps["get"], getTwice},
	"acquire": {steps["acquire"], getTwice},
	"fill":    {steps["fill"], getTwice},
	"fail": {scriptOf("fail"), func(t *testing.T, f *fleet, rule *redistest.Rule) {
		failure := errors.New("no such table")
		f.until(rule, func() {
			_, err := Get(context.Background(), f.guards[0], "k", func(context.Context) (string, error) { return "", failure })
			expect.Equal(t, "the loader's own error", errors.Is(err, failure), true)
		})
	}},
	"renew": {scriptOf("renew"), func(t *testing.T, f *fleet, rule *redistest.Rule) {
		f.until(rule, func() {
			db := newSource("new")
			slow := async(f.guards[0], "k", db.load)
			f.struck(rule) // and the lease may be lost
			close(db.release)
			want(t, slow, "new")
		})
	}},
	"release": {scriptOf("release"), func(t *testing.T, f *fleet, rule *redistest.Rule) {
		f.until(rule, func() {
			db := newSource("old")
			ctx, cancel := context.WithCancel(context.Background())
			left := asyncCtx(ctx, f.guards[0], "k", db.load)
			<-db.begun
			cancel()
			expect.Equal(t, "the caller left", errors.Is((<-left).err, context.Canceled), true)
			f.struck(rule)
		})
	}},
	"invalidate": {scriptOf("invalidate"), func(t *testing.T, f *fleet, rule *redistest.Rule) {
		mustGet(t, f.guards[1], "k", returns("old"))
		err := f.guards[0].Invalidate(context.Background(), "k")
		<-rule.Hit() // it is sent in any case
		if err != nil && !errors.As(err, new(*RedisError)) {
			t.Errorf("Invalidate: %v", err)
		}
		expect.Equal(t, "here", mustGet(t, f.guards[0], "k", returns("new")), "new")
		if err == nil {
			expect.Equal(t, "there", mustGet(t, f.guards[1], "k", returns("new")), "new")
		}
	}},
}

// struck waits until the fault has struck, or something else failed: on a busy machine, a step before it may take longer
// than RedisTimeout, and then the faulty one is never taken.
func (f *fleet) struck(rule *redistest.Rule) {
	f.t.Helper()
	before := f.tolerated
	redistest.Await(f.t, "the fault strikes", func() bool {
		f.tolerated = f.events.redisErrors.Load()
		return rule.Count() > 0 || f.tolerated > before
	})
}

// until repeats it until the fault has struck.
func (f *fleet) until(rule *redistest.Rule, do func()) {
	f.t.Helper()
	redistest.Await(f.t, "the fault strikes in the end", func() bool {
		do()
		return rule.Count() > 0
	})
}

func getTwice(t *testing.T, f *fleet, rule *redistest.Rule) {
	f.until(rule, func() { expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("new")), "new") })
	expect.Equal(t, "value once more", mustGet(t, f.guards[0], "k", returns("new")), "new")
}

// expired reports whether anybody may take the key's lease.
func (f *fleet) expired(key string) bool {
	deadline, err := f.redis.HGet(context.Background(), f.lease(key), "deadline").Int64()
	now := f.redis.Time(context.Background()).Val()
	return err == nil && deadline < now.UnixMilli()
}

func TestFailClosedReturnsTheRedisError(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"get", "acquire"} {
		f, proxy := broken(t, shared, Config{FailClosed: true, LeaseTTL: time.Minute})
		proxy.On(steps[name], redistest.ReplyError("LOADING not yet"))
		expectRedisError(t, expect.Err(Get(context.Background(), f.guards[0], "k", unwanted[string](t))), name, "k")
	}
}

func TestWithoutRedisCallersStillShareLoads(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	proxy.Refuse(true)
	db := newSource("v")
	var replies []<-chan reply[string]
	for range 20 {
		replies = append(replies, async(f.guards[0], "k", db.load))
	}
	<-db.begun
	redistest.Await(t, "20 callers wait", func() bool {
		return f.guards[0].flights.Count(only(flightKey{key: "k", shape: protocol.ShapeOf[string]{}, mode: direct})).Callers == 20
	})
	close(db.release)
	for _, r := range replies {
		want(t, r, "v")
	}
	if n := db.loads.Load(); n > 2 { // one, and one more for those who began after it did
		t.Errorf("%d loads", n)
	}
	expectRedisError(t, f.guards[0].Invalidate(context.Background(), "a", "b"), "invalidate", "a")
}

func TestAnInvalidateWhoseReplyIsLostSaysSo(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: brisk})
	mustGet(t, f.guards[1], "k", returns("old"))
	rule := proxy.On(scriptOf("invalidate"), redistest.SwallowReply)
	expectRedisError(t, f.guards[0].Invalidate(context.Background(), "k"), "invalidate", "k")
	<-rule.Hit()
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns("new")), "new") // it was done all the same
}

func TestInvalidateIsSentThoughTheCallersContextHasEnded(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	mustGet(t, f.guards[0], "k", returns("old"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.guards[0].Invalidate(ctx, "k"); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	redistest.Await(t, "the value is gone", func() bool { return !f.exists(f.value("k")) })
}
