package redistest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestClusterServesEveryPrimaryWhenStartReturns(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t)
	for i := range 30 {
		set(t, rdb, fmt.Sprint("k", i))
	}
	for i := range c.Addrs() {
		if c.Node(i).Commands()["set"] == 0 {
			t.Errorf("node %d was sent none of 30 keys", i)
		}
	}
}

func TestAClusterOutsideOfATestServesAllAndIsStopped(t *testing.T) {
	t.Parallel()
	c, stop, err := redistest.StartClusterForMain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() }) // again: an error
	rdb := c.Client(t)
	for i := range 30 {
		set(t, rdb, fmt.Sprint("k", i))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Error("a node still answers")
	}
}

func TestClusterPromotesAReplicaWhenItsPrimaryDies(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1)
	if n := len(c.Addrs()); n != 6 {
		t.Fatalf("%d nodes, want 6", n)
	}
	if got, want := c.Node(3).Info("replication")["master_port"], fmt.Sprint(c.Node(0).Port()); got != want {
		t.Fatalf("node 3 follows port %s, want node 0 on %s", got, want)
	}
	c.Node(0).Kill()
	redistest.Await(t, "node 3 to become a primary", func() bool {
		return c.Node(3).Info("replication")["role"] == "master"
	})
}

func TestClusterClientTakesTweaks(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.ClientName = "tweaked" })
	if got := rdb.ClientList(t.Context()).Val(); !strings.Contains(got, "name=tweaked") {
		t.Errorf("no client has the name:\n%s", got)
	}
}

// Redis 7.0 crashes when a connection is to be ended that is not there.
func TestTheBusIsCutAsOftenAsOneLikes(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	frozen, node := c.Node(0), c.Node(1).Client(t)
	id := frozen.Client(t).ClusterMyID(t.Context()).Val()
	frozen.Pause()
	for i := range 20 {
		if cut, err := redistest.CutBus(t.Context(), node, id); err != nil || i == 0 && !cut {
			t.Fatalf("cut %d: %v, %v", i, cut, err)
		}
	}
	frozen.Resume()
	redistest.Await(t, "it speaks to it again", func() bool {
		cut, err := redistest.CutBus(t.Context(), node, id)
		return err == nil && cut
	})
}

func TestSentinelPromotesTheReplicaWhenThePrimaryDies(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	rdb := s.FailoverClient(t)
	set(t, rdb, "before")
	s.Primary().Kill()
	redistest.Await(t, "the client to write to the promoted replica", func() bool {
		return rdb.Set(t.Context(), "after", "v", 0).Err() == nil
	})
	if got := s.Replica().Commands()["set"]; got == 0 {
		t.Error("the write went somewhere else")
	}
}

func TestSentinelIsAskedByItsAddressAndName(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	ask := redis.NewSentinelClient(&redis.Options{Addr: s.Addrs()[0]})
	t.Cleanup(func() { _ = ask.Close() })
	primary, err := ask.GetMasterAddrByName(t.Context(), s.Name()).Result()
	if err != nil || primary[1] != s.Primary().Addr()[len("127.0.0.1:"):] {
		t.Errorf("primary = %v, %v; want %s", primary, err, s.Primary().Addr())
	}
}
