package cacheguard

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/replicas"
)

// Redis is what a Guard needs of a client: *redis.Client (also a Sentinel failover client), *redis.ClusterClient and
// *redis.Ring have it. The Guard never configures or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// ErrNotReplicated is matched by the *RedisError of an Invalidate, Update or Put that reached the primary, but that fewer replicas
// than Config.Replicas acknowledged in time. It is the same error in all packages of the library.
var ErrNotReplicated = replicas.ErrNotReplicated
