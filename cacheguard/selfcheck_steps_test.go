package cacheguard

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/selfcheck"
)

// ofSelfCheck picks out commands about the keys that SelfCheck makes.
func ofSelfCheck(match redistest.Match) redistest.Match {
	return func(args []string) bool {
		return match(args) && strings.Contains(strings.Join(args, " "), "self-check:")
	}
}

// makingEpochs picks out reads of epochs alone, and what makes missing ones.
func makingEpochs(args []string) bool {
	return scriptOf("make")(args) || reading(args) && !slices.ContainsFunc(args[1:], func(key string) bool { return !strings.HasSuffix(key, ":epoch") })
}

// afterTag picks out what comes when a tag has been invalidated, the step before the last two.
func afterTag(match redistest.Match) redistest.Match {
	var tagged atomic.Bool
	revoke := scriptOf("revoke")
	return func(args []string) bool {
		after := tagged.Load()
		if revoke(args) {
			tagged.Store(true)
		}
		return after && match(args)
	}
}

// A server, or a proxy before it, that answers one request with an error.
func TestSelfCheckNamesTheStepThatFails(t *testing.T) {
	t.Parallel()
	type example struct {
		at   redistest.Match
		want string
	}
	expect.Each(t, map[string]example{
		"message":      {ofSelfCheck(redistest.Command("publish")), "cannot send a message: "},
		"script":       {ofSelfCheck(scriptOf("renew")), "script renew: "},
		"put":          {ofSelfCheck(scriptOf("put")), "script put: "},
		"read":         {ofSelfCheck(reading), "cannot read a key: "},
		"epoch":        {makingEpochs, "cannot make an epoch: "},
		"tag":          {scriptOf("revoke"), "cannot invalidate a tag: "},
		"lock":         {afterTag(redistest.Command("evalsha")), "cannot take the lock of an update: "},
		"invalidation": {afterTag(scriptOf("invalidate")), "cannot invalidate a key: "},
	}, func(t *testing.T, _ string, c example) {
		f, proxy := broken(t, shared, withLocal)
		rule := proxy.On(c.at, redistest.ReplyError("ERR out of order"))
		expect.Says(t, f.guards[0].SelfCheck(redistest.Patiently(t)), c.want, "out of order")
		rule.Remove()
		expect.Equal(t, "afterwards", f.guards[0].SelfCheck(redistest.Patiently(t)), nil)
	})
}

// A read that is not answered has nothing to look at.
func TestSelfCheckEndsWithItsContextWhileItReads(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	ctx, cancel := context.WithCancel(redistest.Patiently(t))
	read, invalidated := ofSelfCheck(reading), scriptOf("invalidate")
	var last atomic.Bool // of the scripts
	proxy.On(func(args []string) bool {
		if invalidated(args) {
			last.Store(true)
		}
		is := last.Load() && read(args)
		if is {
			cancel()
		}
		return is
	}, redistest.SwallowReply)
	err := f.guards[0].SelfCheck(ctx)
	expect.ErrorIs(t, err, context.Canceled)
	expect.Equal(t, "step", strings.Contains(err.Error(), "cannot read a key"), true)
}

// A Redis that evicts locks, or has somebody who writes where only the Guard may.
func TestSelfCheckSeesThatAScriptDidNotDoItsWork(t *testing.T) {
	t.Parallel()
	type example struct {
		before redistest.Match
		do     func(f *fleet, valueKey string) error
		want   string
	}
	expect.Each(t, map[string]example{
		"lease is gone": {scriptOf("renew"), func(f *fleet, valueKey string) error {
			return f.redis.Del(context.Background(), protocol.LeaseKey(valueKey)).Err()
		}, "script renew: it returned 0 instead of 1"},
		"value is there": {reading, func(f *fleet, valueKey string) error {
			return f.redis.Set(context.Background(), valueKey, "by another", 0).Err()
		}, "a value is there after it was removed"},
	}, func(t *testing.T, _ string, c example) {
		f, proxy := broken(t, shared, Config{})
		of := ofSelfCheck(c.before)
		proxy.On(func(args []string) bool {
			if of(args) {
				_, key, _ := strings.Cut(strings.Join(args, " "), "{self-check:")
				key, _, _ = strings.Cut(key, "}")
				expect.Equal(t, "done", c.do(f, f.value("self-check:"+key)), nil)
			}
			return false
		}, redistest.CutBefore)
		expect.Says(t, f.guards[0].SelfCheck(redistest.Patiently(t)), c.want)
	})
}

// Wherever SelfCheck waits for a message, it ends with its Guard, and with its context.
func TestSelfCheckWaitsForMessagesNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*selfcheck.Checks, *redistest.Proxy) (lost func() bool, run func(context.Context) error){
		"its subscription": func(c *selfcheck.Checks, proxy *redistest.Proxy) (func() bool, func(context.Context) error) {
			proxy.BlackHoleSubscribers(true)
			return func() bool { return c.Inbox.Address() == "" }, c.Messages
		},
		"a message": func(c *selfcheck.Checks, proxy *redistest.Proxy) (func() bool, func(context.Context) error) {
			proxy.BlackHoleSubscribers(true)
			before := proxy.Commands()["publish"]
			return func() bool { return proxy.Commands()["publish"] > before }, c.Messages
		},
		"an invalidation": func(c *selfcheck.Checks, proxy *redistest.Proxy) (func() bool, func(context.Context) error) {
			var sent atomic.Bool
			invalidate := c.Invalidate
			c.Invalidate = func(ctx context.Context, keys, names []string) error {
				proxy.BlackHoleSubscribers(true)
				defer sent.Store(true)
				return invalidate(ctx, keys, names)
			}
			return sent.Load, func(ctx context.Context) error { _, err := c.Run(ctx); return err }
		},
	} {
		for what, want := range map[string]error{"Guard": ErrClosed, "context": context.Canceled} {
			expect.Beside(t, name+", "+what, func(t *testing.T) {
				f, proxy := broken(t, shared, withLocal)
				f.listening()
				defer proxy.BlackHoleSubscribers(false)
				lost, run := lose(f.guards[0].checks(), proxy)
				ctx, cancel := context.WithTimeout(t.Context(), 2*redistest.Patience) // without an end of its own it has a few seconds
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- run(ctx) }()
				redistest.Await(t, "the loss", lost)
				if what == "Guard" {
					_ = f.guards[0].Close()
				} else {
					cancel()
				}
				expect.ErrorIs(t, <-done, want)
			})
		}
	}
}
