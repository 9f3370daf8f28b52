package reader

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

func TestKeysOfEveryNodeOfAClusterAreRead(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t)
	r := newReader(t, rdb, patient)
	var all []*asking
	for i := range 200 {
		key := strconv.Itoa(i)
		rdb.Set(t.Context(), key, "value of "+key, 0)
		all = append(all, ask(t, r, key))
	}
	for i, a := range all {
		a.expect("value of " + strconv.Itoa(i))
	}
	for i := range 3 {
		if c.Node(i).Commands()["get"] == 0 {
			t.Errorf("node %d was asked for none of the keys", i)
		}
	}
}

func TestNodeOfAClusterThatHangsHoldsUpItsOwnKeysOnly(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout, o.MaxRedirects = -1, -1 })
	r := newReader(t, rdb, 500*time.Millisecond)
	var ofFirst, ofOthers []string // the masters have equal shares of the slots, in order
	for i := range 300 {
		key := strconv.Itoa(i)
		switch r.health.Part(key) {
		case 0, 1:
			ofFirst = append(ofFirst, key)
		case 3, 5:
			ofOthers = append(ofOthers, key)
			rdb.Set(t.Context(), key, "value of "+key, 0)
		}
	}
	c.Node(0).Pause()
	var held, all []*asking
	for _, key := range ofFirst {
		held = append(held, ask(t, r, key))
	}
	for _, key := range ofOthers {
		all = append(all, ask(t, r, key))
	}
	for i, a := range all {
		a.expect("value of " + ofOthers[i])
	}
	for _, a := range held {
		a.expectTimeout()
	}
	c.Node(0).Resume()
}

func TestBatchReachesEveryShardOfARing(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	rdb := redis.NewRing(&redis.RingOptions{
		Addrs:           map[string]string{"a": servers[0].Addr(), "b": servers[1].Addr()},
		DisableIdentity: true,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	expectOneBatch(t, rdb, func(key string) { rdb.Set(t.Context(), key, "value of "+key, 0) })
	for i, s := range servers {
		if s.Commands()["get"] == 0 {
			t.Errorf("shard %d was asked for none of the keys", i)
		}
	}
}

// expectOneBatch reads keys on all nodes while the client holds the first GET of their lane, so that they make one
// batch.
func expectOneBatch(t *testing.T, rdb interface {
	Redis
	AddHook(redis.Hook)
}, set func(key string)) {
	t.Helper()
	r := newReader(t, rdb, patient)
	k := keys(t, r, 50)
	for _, key := range k[:40] {
		set(key)
	}
	sent, gate := new(recorder), &gate{shut: make(chan struct{}), open: make(chan struct{})}
	rdb.AddHook(sent)
	rdb.AddHook(gate)
	first := ask(t, r, k[0])
	receive(t, gate.shut)
	var all []*asking
	for _, key := range k {
		all = append(all, ask(t, r, key))
	}
	close(gate.open)
	first.expect("value of " + k[0])
	for i, a := range all[:40] {
		a.expect("value of " + k[i])
	}
	for _, a := range all[40:] {
		a.expectAbsence()
	}
	sent.expect(t, k[:1], k)
}

// gate is a hook that holds a single GET until it is opened.
type gate struct{ shut, open chan struct{} }

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		close(g.shut)
		<-g.open
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
