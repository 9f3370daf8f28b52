package segment

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// crowd makes callers of all counters take, add and rebalance until nothing is left, or 300 times. It returns how many units the callers
// have, less what they added, and how many more they may have added. It tolerates errors of Redis.
func crowd(t *testing.T, counters []*Counter, callers int) (out, unsure int64) {
	t.Helper()
	var taken, maybe atomic.Int64
	var all sync.WaitGroup
	for _, c := range counters {
		for range callers {
			all.Go(func() {
				for i := range 300 {
					n, err := someCall(c, i)
					switch {
					case errors.Is(err, ErrShort):
						return
					case errors.Is(err, ErrUncertain):
						maybe.Add(1)
					case err == nil:
						taken.Add(n)
					case errors.Is(err, ErrNotFound):
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	return taken.Load(), maybe.Load()
}

func someCall(c *Counter, i int) (out int64, err error) {
	ctx, n := context.Background(), 1+rand.Int64N(4)
	switch {
	case i%16 == 7:
		return -1, c.Add(ctx, name, 1)
	case i%16 == 11:
		return 0, c.Rebalance(ctx, name)
	case i%2 == 0:
		return c.TakeUpTo(ctx, name, n)
	}
	if err := c.Take(ctx, name, n); err != nil {
		return 0, err
	}
	return n, nil
}

func TestManyTakersOfManyClientsTakeExactlyWhatThereIs(t *testing.T) {
	t.Parallel()
	const callers = 6
	units := int64(expect.Samples(500, 1500))
	for kind, client := range map[string]func(t *testing.T) func() Redis{
		"standalone": func(t *testing.T) func() Redis { return func() Redis { return shared.Client(t) } },
		"cluster": func(t *testing.T) func() Redis {
			cluster := redistest.StartCluster(t, 0)
			return func() Redis { return cluster.Client(t) }
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			newClient := client(t)
			c := newStock(t, newClient(), 6, units)
			out, _ := crowd(t, []*Counter{c, another(t, c, newClient()), another(t, c, newClient())}, callers)
			left, err := c.Total(t.Context(), name)
			if err != nil || out+left != units {
				t.Errorf("%d were taken and %d are left of %d, %v", out, left, units, err)
			}
		})
	}
}

func TestTheAccountsAreExactThoughRepliesAreLost(t *testing.T) {
	t.Parallel()
	const units = 600
	c := newStock(t, shared.Client(t), 4, units)
	near, p := newProxied(t, c)
	var n atomic.Int64
	every := func(k int64) redistest.Match {
		return func(args []string) bool {
			return (args[0] == "evalsha" || args[0] == "hdel") && n.Add(1)%k == 0
		}
	}
	lost := p.On(every(13), redistest.DropReply)
	p.On(every(17), redistest.CutBefore)
	out, unsure := crowd(t, []*Counter{c, near}, 4)
	ok(t, near.Close())
	left, err := c.Total(t.Context(), name)
	if err != nil || out+left < units || out+left > units+unsure {
		t.Errorf("%d were taken and %d are left of %d and %d uncertain ones, %v", out, left, units, unsure, err)
	}
	if lost.Count() == 0 {
		t.Error("no reply was lost")
	}
}
