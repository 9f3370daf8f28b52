package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestWrittenSaysWhetherWriteWasCalled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	g := f.guards[0]
	c := newCaches(t, f, CacheConfig[int, string]{Name: "row", Load: func(context.Context, int) (string, error) { return "", nil }})[0]
	over, cancel := context.WithCancel(ctx)
	cancel()
	closed := newFleet(t, standalone(t), 1, Config{}).guards[0]
	in := mustIntend(t, closed, Changes{Keys: []string{"k"}})
	_ = closed.Close() // always nil
	nothing := func(context.Context) error { return nil }
	failed := errors.New("refused by the database")
	fails := func(context.Context) error { return failed }
	inner := func(err *error) func(context.Context) error { // an Update that is refused, within one that is not
		return func(ctx context.Context) error {
			*err = g.Update(ctx, "k", nothing)
			return *err
		}
	}
	var reentrant error
	var noCache *Cache[int, string]
	var noGuard *Guard
	for name, c := range map[string]struct {
		err     error
		written bool
	}{
		"nil":                       {nil, true},
		"write's own error":         {g.Update(ctx, "k", fails), true},
		"no key":                    {g.Update(ctx, "", fails), false},
		"no keys":                   {g.UpdateMany(ctx, nil, fails), false},
		"no write":                  {g.Update(ctx, "k", nil), false},
		"an ended context":          {g.Update(over, "k", fails), false},
		"a closed Guard":            {closed.Update(ctx, "k", fails), false},
		"no Guard":                  {noGuard.Update(ctx, "k", fails), false},
		"no Cache":                  {noCache.Update(ctx, 1, fails), false},
		"a Put of no Cache":         {noCache.Put(ctx, 1, nil), false},
		"a Put without a write":     {c.Put(ctx, 1, nil), false},
		"a write that was refused":  {g.Update(ctx, "k", inner(&reentrant)), true},
		"that refusal":              {reentrant, false},
		"a write that met a closed": {g.Update(ctx, "k", func(ctx context.Context) error { return closed.Update(ctx, "k", nothing) }), true},
		"Done of a closed Guard":    {in.Done(ctx), true},
		"another error":             {failed, true},
	} {
		expect.Equal(t, name, Written(c.err), c.written)
	}
	expect.ErrorIs(t, reentrant, ErrReentrant)
	expect.ErrorIs(t, in.Done(ctx), ErrClosed)
	expect.Equal(t, "the error of a closed Guard", closed.Update(ctx, "k", nothing), ErrClosed)
}

func TestAlsoIsRefusedOutsideOfAWrite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	expect.ErrorIs(t, Also(ctx, Changes{Keys: []string{"k"}}), errNoUpdate)
	var of context.Context
	expect.Equal(t, "Update", f.guards[0].Update(ctx, "k", func(ctx context.Context) error {
		of = ctx //nolint:fatcontext // to see that it is of no use afterwards
		expect.ErrorIs(t, Also(ctx, Changes{Keys: []string{""}}), errEmptyKey)
		return nil
	}), nil)
	expect.ErrorIs(t, Also(of, Changes{Keys: []string{"j"}}), write.ErrDone)
	expect.Equal(t, "stands", f.exists(f.intents("j")), false)
}

func TestAPanicInAWriteEndsWhatItNamed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	g := f.guards[0]
	mustGet(t, g, "j", returns("old"))
	func() {
		defer func() { _ = recover() }()
		_ = g.Update(context.Background(), "k", func(ctx context.Context) error {
			panic(Also(ctx, Changes{Keys: []string{"j"}}))
		})
	}()
	expect.Equal(t, "stands", f.exists(f.intents("j")), false)
	expect.Equal(t, "value", mustGet(t, g, "j", returns("new")), "new")
}

func TestAnIntentWithUpdateAnywayInvalidatesWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	x := newChanged(t, shared, Config{RedisTimeout: impatient.RedisTimeout, LeaseTTL: impatient.LeaseTTL, UpdateAnyway: true})
	cut := x.proxy.On(func([]string) bool { return true }, redistest.CutBefore)
	in := mustIntend(t, x.guards[0], Changes{Keys: []string{rowKey}, Tags: []string{"row"}})
	expect.Equal(t, "write", x.row.write("new")(context.Background()), nil)
	err := in.Done(context.Background())
	var failed *RedisError
	ok := errors.As(err, &failed)
	expect.Equal(t, "it is pending", ok && failed.Op == "invalidate" && Written(err), true)
	expect.Equal(t, "here", x.read(0), "new")
	cut.Remove()
	redistest.Await(t, "nothing is pending", func() bool { return x.guards[0].writes.Pending() == 0 })
	x.settle("new")
}

// alsoOf calls f with the Also of an intent, and with a write's.
func alsoOf(t *testing.T, g *Guard, f func(t *testing.T, also func(context.Context, Changes, ...Changes) error)) {
	t.Run("of an intent", func(t *testing.T) {
		in := mustIntend(t, g, Changes{})
		f(t, in.Also)
		mustDone(t, in)
	})
	t.Run("of a write", func(t *testing.T) {
		err := g.Update(context.Background(), "written", func(within context.Context) error {
			f(t, func(ctx context.Context, c Changes, then ...Changes) error {
				both, cancel := context.WithCancel(within)
				defer cancel()
				defer context.AfterFunc(ctx, cancel)()
				return Also(both, c, then...)
			})
			return nil
		})
		expect.Equal(t, "Update", err, nil)
	})
}

// A caller that repeats what failed must not take the second answer for Redis' own.
func TestAnAlsoThatFailedAsksRedisAgain(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing, LeaseTTL: time.Minute})
	for name, script := range map[string]string{"k": "intend", "shoes": "intend_tag"} {
		named := Changes{Keys: []string{name}}
		stands := func() bool { return f.exists(f.intents(name)) }
		if name == "shoes" {
			named, stands = Changes{Tags: []string{name}}, func() bool { return f.exists(f.guards[0].cfg.Prefix + ":{0}:epoch:until:t:shoes") }
		}
		alsoOf(t, f.guards[0], func(t *testing.T, also func(context.Context, Changes, ...Changes) error) {
			refused := proxy.On(scriptOf(script), redistest.ReplyError("OOM command not allowed"))
			for range 3 {
				expectRedisError(t, also(t.Context(), named), "intend", "")
			}
			refused.Remove()
			expect.Equal(t, "stands", stands(), false)
			expect.Equal(t, "Redis can be told", also(t.Context(), named), nil)
			expect.Equal(t, "stands", stands(), true)
			sent := proxy.On(scriptOf(script), redistest.DropReply)
			expect.Equal(t, "Redis knows", also(t.Context(), named), nil)
			expect.Equal(t, "it is told", sent.Count(), 0)
			sent.Remove()
		})
	}
}

// One that is under way is no answer yet: not to its own caller, who has left and asks again, and not to another one.
func TestAnAlsoBesideOneUnderWayAnswersForItself(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing, LeaseTTL: time.Minute})
	alsoOf(t, f.guards[0], func(t *testing.T, also func(context.Context, Changes, ...Changes) error) {
		held := proxy.On(scriptOf("intend"), redistest.Hold).Times(1)
		refused := proxy.On(scriptOf("intend"), redistest.ReplyError("OOM command not allowed"))
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- also(ctx, Changes{Keys: []string{"k"}}) }() // owner: the test; ends with ctx; joined by receiving
		<-held.Hit()
		if also(t.Context(), Changes{Keys: []string{"k"}}) == nil {
			t.Error("nil, and Redis knows of nothing")
		}
		leave()
		expect.ErrorIs(t, <-first, context.Canceled)
		if also(t.Context(), Changes{Keys: []string{"k"}}) == nil {
			t.Error("nil, and Redis knows of nothing")
		}
		refused.Remove()
		held.Remove()
		expect.Equal(t, "Also", also(t.Context(), Changes{Keys: []string{"k"}}), nil)
		expect.Equal(t, "stands", f.exists(f.intents("k")), true)
	})
}
