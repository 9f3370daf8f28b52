package link

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestOnlyAPlainClientMayBeUsedByOwnHands(t *testing.T) {
	t.Parallel()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	for _, rdb := range []Redis{cluster, ring, struct{ Redis }{ring}} {
		if newOwnHands(rdb, ownTimeout, patient) != nil {
			t.Errorf("%T", rdb)
		}
	}
	_ = cluster.Close() // was never used
	_ = ring.Close()
}

// count is a hook that counts GETs.
type count struct{ n *atomic.Int64 }

func (c count) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c count) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "get" {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c count) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestHookSeesEveryRequestAlsoWhenItIsAddedLater(t *testing.T) {
	t.Parallel()
	const n = 100
	s := bareStage(t, patient)
	var seen atomic.Int64
	s.awaitOwnHands("k")
	s.client.AddHook(count{&seen})
	redistest.Await(t, "the link looks again", func() bool { return !s.own.hooks.None() })
	before := seen.Load()
	for range n {
		ask(t, s.Link, "k").expectAbsence()
	}
	if got := seen.Load() - before; got != n {
		t.Errorf("the hook saw %d of %d requests", got, n)
	}
}
