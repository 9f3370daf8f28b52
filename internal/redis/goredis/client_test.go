package goredis_test

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestClientsThatMayAnswerFromElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	var none *redis.Client
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	replicas := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, RouteByLatency: true})
	defer one.Close()
	defer cluster.Close()
	defer replicas.Close()
	for _, c := range []struct {
		rdb  any
		want string // empty: no error
	}{{nil, "nil"}, {none, "nil"}, {one, ""}, {cluster, ""}, {replicas, "replicas"}} {
		err := goredis.CheckPrimary(c.rdb)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %q", c.rdb, err, c.want)
		}
	}
}

func TestAClientThatCachesRepliesItselfIsRefused(t *testing.T) {
	t.Parallel()
	o := redis.Options{Addr: "127.0.0.1:1", Protocol: 3}
	cache := reflect.ValueOf(&o).Elem().FieldByName("ClientSideCacheConfig")
	if !cache.IsValid() {
		t.Skip("this go-redis has no client-side cache")
	}
	cache.Set(reflect.New(cache.Type().Elem()))
	rdb := redis.NewClient(&o)
	defer rdb.Close()
	expect.Says(t, goredis.CheckPrimary(rdb), "client-side cache")
}

func TestAClientsServersHaveANameForPeople(t *testing.T) {
	t.Parallel()
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DB: 3})
	primary := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"127.0.0.1:1"}})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	ring := redis.NewRing(&redis.RingOptions{})
	for _, c := range []struct {
		rdb  io.Closer
		want string
	}{
		{one, "127.0.0.1:1, database 3"}, {primary, "the primary that a Sentinel names, database 0"},
		{cluster, "the cluster of 127.0.0.1:1, 127.0.0.1:2"}, {ring, "a *redis.Ring"},
	} {
		expect.Equal(t, fmt.Sprintf("%T", c.rdb), goredis.Where(c.rdb), c.want)
		_ = c.rdb.Close() // it has asked nothing
	}
}

func TestMain(m *testing.M) { leaks.Main(m) }
