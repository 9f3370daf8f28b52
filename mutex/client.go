package mutex

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Redis is what a Locker needs of a client: *redis.Client (also a Sentinel failover client) and *redis.ClusterClient have it. A *redis.Ring is
// refused: two could hold a lock when one process does not reach a shard. The Locker never configures or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}
