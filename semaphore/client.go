package semaphore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Redis is what a Locker needs of a client: *redis.Client (also a Sentinel failover client), *redis.ClusterClient and
// *redis.Ring have it. The Locker never configures or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}
