package cacheguardtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
)

// early are ways to ask a Guard for the key, with a load that takes a second.
var early = map[string]func(context.Context, *cacheguard.Guard, func() string) (string, error){
	"Get": func(ctx context.Context, g *cacheguard.Guard, load func() string) (string, error) {
		return cacheguard.Get(ctx, g, "k", func(context.Context) (string, error) { return load(), nil })
	},
	"GetMany": func(ctx context.Context, g *cacheguard.Guard, load func() string) (string, error) {
		all, err := cacheguard.GetMany(ctx, g, []string{"k"}, func(context.Context, []string) (map[string]string, error) {
			return map[string]string{"k": load()}, nil
		})
		return all["k"], err
	},
	"Cache": func(ctx context.Context, g *cacheguard.Guard, load func() string) (string, error) {
		c, err := cacheguard.NewCache(g, cacheguard.CacheConfig[string, string]{
			Name: "early", Load: func(context.Context, string) (string, error) { return load(), nil },
		})
		if err != nil {
			return "", err
		}
		return c.Get(ctx, "k")
	},
}

// With a load that takes a second, one answer in ten is not drawn 1.1 seconds before the end, and four minutes before none is.
func TestAValueIsReplacedEarlyThoughLocalTiersAnswer(t *testing.T) {
	t.Parallel()
	for name, get := range early {
		for kept, ttl := range map[string]time.Duration{"to the end": time.Hour, "for a twelfth": 5 * time.Minute} {
			t.Run(name+" "+kept, func(t *testing.T) {
				t.Parallel()
				cfg, how := outcomes(cacheguard.Config{
					TTL: time.Hour, EarlyRefresh: 10, Local: cacheguard.LocalConfig{MaxEntries: 10, TTL: ttl},
				})
				env := cacheguardtest.New(t, cfg)
				guards := append(others(t, env, cfg, 7), env.Guard)
				value := 0
				ask := func(want ...int) {
					t.Helper()
					for _, g := range guards {
						got, err := get(t.Context(), g, func() string {
							env.Advance(time.Second)
							value++
							return fmt.Sprint(value)
						})
						expect.ErrorIs(t, err, nil)
						if is := got == fmt.Sprint(want[0]) || got == fmt.Sprint(want[len(want)-1]); !is {
							t.Errorf("the value is %s, want one of %v", got, want)
						}
						env.Settle()
					}
				}
				ask(1)
				expect.Equal(t, "outcome of the first", <-how, cacheguard.Loaded)
				for round := 1; round <= 12; round++ {
					env.Advance(10 * time.Second)
					ask(round) // it is read into the tiers
					env.Advance(56*time.Minute - 10*time.Second)
					ask(round)
					env.Advance(4*time.Minute - 1100*time.Millisecond)
					ask(round, round+1)
				}
				for len(how) > 0 {
					if o := <-how; o != cacheguard.Hit && o != cacheguard.Local {
						t.Errorf("a call was answered %s: it waited for a load", o)
					}
				}
				expect.Equal(t, "loads", env.Loads("k")+env.Loads("early:k"), 13)
			})
		}
	}
}

// others are more Guards on the Redis of the environment.
func others(t *testing.T, env *cacheguardtest.Env, cfg cacheguard.Config, n int) (guards []*cacheguard.Guard) {
	t.Helper()
	for range n {
		g, err := cacheguard.New(env.Redis, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() }) // always nil
		guards = append(guards, g)
	}
	return guards
}
