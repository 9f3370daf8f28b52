package send

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestKeysOfEveryNodeOfAClusterAreReadAndCalled(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t)
	l := newLink(t, rdb, patient)
	var reads []asking
	var calls []doing
	for i := range 200 {
		key := strconv.Itoa(i)
		rdb.Set(t.Context(), key, "value of "+key, 0)
		reads = append(reads, ask(t, l, key))
		calls = append(calls, do(t, l, echoed(key, key)))
	}
	for i, a := range reads {
		a.expect("value of " + strconv.Itoa(i))
	}
	expectEach(calls)
	for i := range 3 {
		if n := c.Node(i).Commands(); n["get"] == 0 || n["evalsha"] == 0 {
			t.Errorf("node %d was asked for none of the keys", i)
		}
	}
}

func TestNodeOfAClusterThatHangsHoldsUpItsOwnPartOnly(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout, o.MaxRedirects = -1, -1 })
	l := newLink(t, rdb, 500*time.Millisecond)
	var ofFirst, ofOthers []string // the masters have equal shares of the slots, in order
	for i := range 300 {
		key := strconv.Itoa(i)
		switch l.breakers.Part(key) {
		case 0, 1:
			ofFirst = append(ofFirst, key)
		case 3, 5:
			ofOthers = append(ofOthers, key)
			rdb.Set(t.Context(), key, "value of "+key, 0)
		}
	}
	c.Node(0).Pause()
	var held, all []asking
	var calls []doing
	for _, key := range ofFirst {
		held = append(held, ask(t, l, key))
	}
	for i, key := range ofOthers {
		all = append(all, ask(t, l, key))
		calls = append(calls, do(t, l, echoed(key, strconv.Itoa(i))))
	}
	for i, a := range all {
		a.expect("value of " + ofOthers[i])
	}
	expectEach(calls)
	for _, a := range held {
		if read := a.answer(); read.Err == nil {
			t.Errorf("read %q of a node that hangs", read.Raw)
		}
	}
	c.Node(0).Resume()
}

func TestParcelReachesEveryShardOfARing(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	rdb := redis.NewRing(&redis.RingOptions{
		Addrs:           map[string]string{"a": servers[0].Addr(), "b": servers[1].Addr()},
		DisableIdentity: true,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	l := newLink(t, rdb, patient)
	l.pin(shortest)
	k := keysOf(t, l, 50)
	for _, key := range k[:40] {
		rdb.Set(t.Context(), key, "value of "+key, 0)
	}
	sent, gate := new(recorder), newGate()
	rdb.AddHook(sent)
	rdb.AddHook(gate)
	first := ask(t, l, k[0])
	receive(t, gate.shut)
	var all []asking
	for _, key := range k {
		all = append(all, ask(t, l, key))
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
	for i, s := range servers {
		if s.Commands()["get"] == 0 {
			t.Errorf("shard %d was asked for none of the keys", i)
		}
	}
}
