// Package primary refuses Redis clients that may read from a replica, because they can return values that the
// primary has replaced.
package primary

import (
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"
)

// Check says why rdb cannot be used. A failover client that is ReplicaOnly cannot be recognized.
func Check(rdb any) error {
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("rdb is nil")
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
