package send

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
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

// clustered is a client that looks like a cluster's.
type clustered struct{ *redis.Client }

func (clustered) ReloadState(context.Context) {}

// A cluster client would send the pipeline again itself, and might have two goroutines write into one command.
func TestPipelineToAClusterIsSentOnceAndItsCallsAgainAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	rdb := clustered{s.client}
	h := breaker.New(rdb, t.Name(), time.Second, func(bool) { t.Error("the breaker opened") })
	s.Link = New(rdb, patient, h)
	t.Cleanup(s.Close)
	s.pin(shortest)
	for range 8 { // more than open a breaker
		release := s.occupied("k")
		before := len(s.sent.all())
		all := s.doAll(3, "k")
		lost := s.proxy.On(redistest.Command("evalsha"), redistest.DropReply).Times(1)
		release()
		expectEach(all)
		expect.Equal(t, "replies that were lost", lost.Count(), 1)
		got := s.sent.all()[before:]
		if len(got) != 4 || len(got[0]) != 3 {
			t.Errorf("sent %q, want a pipeline of three, and each of them alone", got)
		}
	}
}

func TestCallOfABrokenPipelineWhoseCallerLeavesIsReportedLate(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.Link = New(clustered{s.client}, patient, breaker.New(s.client, t.Name(), time.Second, nil))
	t.Cleanup(s.Close)
	s.pin(shortest)
	release := s.occupied("k")
	late, c := make(chan struct{}, 1), echoed("k", "1")
	c.Late = func(Reply, error) { late <- struct{}{} }
	first, second := do(t, s.Link, echoed("k", "0")), do(t, s.Link, c)
	s.proxy.On(redistest.Command("evalsha"), redistest.DropReply).Times(1)
	alone := s.proxy.On(func(args []string) bool { return args[0] == "evalsha" && args[len(args)-1] == "0" }, redistest.Hold)
	release()
	receive(t, alone.Hit())
	second.giveUp()
	alone.Release()
	first.expect("0")
	receive(t, late)
}
