package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestClassOfSaysWhatAnErrorMeansToAClient(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	g := f.guards[0]
	noRows, refused := errors.New("no rows of this test"), errors.New("refused by the database")
	answers := map[int]error{1: noRows, 2: refused}
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "row", NotFound: noRows, Load: func(_ context.Context, k int) (string, error) { return "", answers[k] },
	})[0]
	get := func(ctx context.Context, k int) error { _, err := c.Get(ctx, k); return err }
	many := func(ks ...int) error { _, err := c.GetMany(ctx, ks); return err }
	over, cancel := context.WithCancel(ctx)
	cancel()
	late, cancelLate := context.WithTimeoutCause(ctx, 0, refused)
	defer cancelLate()
	closed := newFleet(t, standalone(t), 1, Config{}).guards[0]
	in := mustIntend(t, closed, Changes{Keys: []string{"k"}})
	_ = closed.Close() // always nil
	returning := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	redisErr := func(op string) error { return &RedisError{Op: op, Err: context.DeadlineExceeded} }
	_, _, uncached := c.Peek(ctx, 9)
	_, empty := Get(ctx, g, "", returns(""))
	_, notBegun := g.Intend(late, Changes{})
	for name, c := range map[string]struct {
		err  error
		want Class
	}{
		"nil":                       {nil, ClassNone},
		"NotFound":                  {get(ctx, 1), ClassAbsent},
		"ErrNotFound, wrapped":      {fmt.Errorf("product: %w", ErrNotFound), ClassAbsent},
		"a panic with NotFound":     {fmt.Errorf("row: %w", &PanicError{Value: noRows}), ClassFailed},
		"a loader's error":          {get(ctx, 2), ClassFailed},
		"a GetMany's":               {many(1, 2), ClassFailed},
		"another instance's":        {&LoadError{Message: "refused"}, ClassFailed},
		"an empty key":              {empty, ClassFailed},
		"a Get that is left":        {get(over, 1), ClassCanceled},
		"a Get with a deadline":     {get(late, 1), ClassCanceled},
		"an Intend with a deadline": {notBegun, ClassCanceled},
		"Peek of nothing":           {uncached, ClassUnavailable},
		"LoadTimeout":               {fmt.Errorf("%w: %w", &loadTimeout{"k", 1}, refused), ClassUnavailable},
		"FailClosed":                {redisErr("get"), ClassUnavailable},
		"one key of a GetMany":      {errors.Join(&KeyError{"a", refused}, &KeyError{"b", redisErr("get")}), ClassUnavailable},
		"a closed Guard":            {closed.Update(ctx, "k", returning(nil)), ClassUnavailable},
		"Done of a closed Guard":    {in.Done(ctx), ClassCommitted},
		"Invalidate":                {errors.Join(redisErr("invalidate"), redisErr("invalidate")), ClassCommitted},
		"a commit, and Done":        {fmt.Errorf("order: %w", errors.Join(nil, in.Done(ctx))), ClassCommitted},
		"a rollback, and Done":      {errors.Join(refused, in.Done(ctx)), ClassFailed},
		"no Also, and Done":         {errors.Join(redisErr("intend"), in.Done(ctx)), ClassUnavailable},
		"an Update that is left":    {g.Update(over, "k", returning(nil)), ClassCanceled},
		"a write's own":             {g.Update(ctx, "k", returning(refused)), ClassFailed},
		"a write's absence":         {g.Update(ctx, "k", returning(noRows)), ClassAbsent},
		"a write's deadline":        {g.Update(ctx, "k", returning(context.DeadlineExceeded)), ClassCanceled},
		"a write's Also":            {g.Update(ctx, "k", returning(redisErr("intend"))), ClassUnavailable},
		"a write's Get":             {g.Update(ctx, "k", returning(redisErr("get"))), ClassFailed},
		"a write's lock":            {g.Update(ctx, "k", returning(lifecycle.ErrNotAcquired)), ClassFailed},
		"ErrReentrant":              {g.Update(ctx, "k", func(ctx context.Context) error { return g.Update(ctx, "k", returning(nil)) }), ClassFailed},
	} {
		expect.Equal(t, name, ClassOf(c.err, noRows), c.want)
	}
}

// What was perhaps written is not to be tried again, and what was written is committed, whatever the lock came to.
func TestAWriteThatReturnedNilIsCommittedThoughItsLockIsLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, LeaseTTL: time.Second, UpdateTimeout: time.Second})
	for _, wrote := range []error{nil, errors.New("refused by the fence")} {
		var err error
		for called := false; !called; {
			err = f.guards[0].Update(ctx, "k", func(ctx context.Context) error {
				called = true
				<-ctx.Done() // UpdateTimeout
				return wrote
			})
		}
		want := ClassCommitted
		if wrote != nil {
			want = ClassFailed
		}
		expect.ErrorIs(t, err, lifecycle.ErrLeaseLost)
		expect.Equal(t, "class", ClassOf(err), want)
		expect.Equal(t, "Written", Written(err), true)
	}
}

// What a Get returns says that nothing was written, also from within a write, whose Update says that it was called.
func TestWrittenSaysNoForWhatAGetReturns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing, FailClosed: true})
	g := f.guards[0]
	over, cancel := context.WithCancel(ctx)
	cancel()
	absent := func(context.Context) (string, error) { return "", ErrNotFound }
	panics := func(context.Context) (string, error) { panic("broken") }
	for name, ask := range map[string]func(ctx context.Context) error{
		"absence":     func(ctx context.Context) error { _, err := Get(ctx, g, "absent", absent); return err },
		"a panic":     func(ctx context.Context) error { _, err := Get(ctx, g, "panics", panics); return err },
		"left":        func(context.Context) error { _, err := Get(over, g, "k", absent); return err },
		"FailClosed":  func(ctx context.Context) error { _, err := Get(ctx, g, "closed", absent); return err },
		"many":        func(ctx context.Context) error { _, err := GetMany(ctx, g, []string{"many"}, manyRefused); return err },
		"ErrClosed":   func(context.Context) error { return ErrClosed },
		"LoadTimeout": func(context.Context) error { return &loadTimeout{"k", 1} },
		"elsewhere":   func(context.Context) error { return &LoadError{Key: "k"} },
	} {
		t.Run(name, func(t *testing.T) {
			refused := proxy.On(func(args []string) bool { return reading(args) && name == "FailClosed" }, redistest.ReplyError("LOADING for a while"))
			defer refused.Remove()
			var read error
			err := g.Update(ctx, "written", func(ctx context.Context) error {
				read = ask(ctx)
				return read
			})
			expect.Equal(t, "Written, of the Get", read != nil && Written(read), false)
			expect.Equal(t, "it has the Get's error", strings.Contains(err.Error(), read.Error()), true)
			expect.Equal(t, "Written, of the Update", Written(err), true)
		})
	}
}

func manyRefused(context.Context, []string) (map[string]string, error) {
	return nil, errors.New("refused")
}
