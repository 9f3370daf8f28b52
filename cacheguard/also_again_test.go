package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

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
				err := also(t.Context(), named)
				if failed, is := errors.AsType[*RedisError](err); !is || failed.Op != "intend" {
					t.Errorf("refused: %v", err)
				}
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
