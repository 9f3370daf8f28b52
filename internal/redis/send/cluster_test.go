package send

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/redistest"
)

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
		if lost.Count() != 1 {
			t.Fatal("no reply was lost")
		}
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
