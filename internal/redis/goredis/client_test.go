package goredis_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/goredis"
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
