package config

import (
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"
)

// CheckClient refuses a client that is nil.
func CheckClient(rdb any) error {
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("rdb is nil")
	}
	return nil
}

// CheckOnePlace refuses a Ring, for what needs one place for each key. When a process does not reach a shard, its Ring uses another one for the
// shard's keys, while others go on with the first.
func CheckOnePlace(rdb any) error {
	if _, ring := rdb.(interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}); ring {
		return errors.New("rdb is a *redis.Ring, which uses another shard for a key when it does not reach the first, while other processes still do: " +
			"use Redis Cluster, Sentinel or a single server")
	}
	return nil
}

// CheckPrimary also refuses a client that may read from a replica, because it can return values that the primary has
// replaced. It cannot recognize a failover client that is ReplicaOnly.
func CheckPrimary(rdb any) error {
	if err := CheckClient(rdb); err != nil {
		return err
	}
	switch client := rdb.(type) {
	case *redis.Client:
		if o := client.Options(); o.ClientSideCache != nil || o.ClientSideCacheConfig != nil {
			return errors.New("rdb has a client-side cache, which learns of changes too late: use a client without")
		}
	case *redis.ClusterClient:
		if client.Options().ReadOnly {
			return errors.New("rdb may read from replicas (ReadOnly, RouteByLatency or RouteRandomly), where old " +
				"values linger: use a client that reads from the primaries")
		}
	}
	return nil
}
