package cacheguard

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/replicas"
	"github.com/cacheguard/go/internal/script"
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

// write runs calls that must not be forgotten, all for one part of the keyspace, under RedisTimeout. Each command has its own error; if
// write itself returns an error, there are no commands: while the breaker is open, it is health.ErrOpen, at once. Only tasks may call it.
func (g *Guard) write(ctx context.Context, calls []*script.Call) ([]*redis.Cmd, error) {
	return g.tell(ctx, calls, func(ctx context.Context) []*redis.Cmd { return script.RunAll(ctx, g.rdb, calls) })
}

// writeOne is write for one call.
func (g *Guard) writeOne(ctx context.Context, call *script.Call) (*redis.Cmd, error) {
	cmds, err := g.tell(ctx, []*script.Call{call}, func(ctx context.Context) []*redis.Cmd {
		return []*redis.Cmd{call.Run(ctx, g.rdb)}
	})
	if err != nil {
		return nil, err
	}
	return cmds[0], cmds[0].Err()
}

// tell runs calls with run, or through acks, if the breaker allows it. The last attempt of a Guard that is closed is always made.
func (g *Guard) tell(
	ctx context.Context, calls []*script.Call, run func(context.Context) []*redis.Cmd,
) (cmds []*redis.Cmd, err error) {
	permit, refused := g.health.Of(calls[0].Keys[0]).Allow()
	if refused == nil {
		defer func() { permit.Done(availability(cmds, err)) }()
	} else if g.life.Ending.Err() == nil {
		return nil, refused
	}
	if g.acks != nil {
		cmds, _ = g.acks.Run(context.WithoutCancel(ctx), calls)
		return cmds, nil
	}
	return bounded(ctx, g, func(ctx context.Context) ([]*redis.Cmd, error) { return run(ctx), nil })
}

// availability is what the outcome of a write says of Redis: any answer says that it can serve.
func availability(cmds []*redis.Cmd, err error) error {
	for _, cmd := range cmds {
		if err = cmd.Err(); !health.Unavailable(err) {
			return nil
		}
	}
	return err
}
