package cacheguard

import (
	"context"
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"
)

// Redis is what a Guard needs of a client: *redis.Client (also a Sentinel failover client), *redis.ClusterClient and
// *redis.Ring have it. The Guard never configures or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// checkClient refuses clients that may answer from elsewhere than the primary.
func checkClient(rdb Redis) error {
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("rdb is nil")
	}
	switch client := rdb.(type) {
	case *redis.Client:
		if o := client.Options(); o.ClientSideCache != nil || o.ClientSideCacheConfig != nil {
			return errors.New("rdb has a client-side cache, which learns of invalidations too late: use a client without")
		}
	case *redis.ClusterClient:
		if client.Options().ReadOnly {
			return errors.New("rdb may read from replicas (ReadOnly, RouteByLatency or RouteRandomly), where " +
				"invalidated values linger: use a client that reads from the primaries")
		}
	}
	return nil
}
