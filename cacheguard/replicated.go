package cacheguard

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/replicas"
	"github.com/cacheguard/go/internal/script"
)

// ErrNotReplicated is matched by the *RedisError of an Invalidate, Update or Put that reached the primary, but that fewer replicas
// than Config.Replicas acknowledged in time. It is the same error in all packages of the library.
var ErrNotReplicated = replicas.ErrNotReplicated

// write runs calls that must not be forgotten, under RedisTimeout. Each command has its own error; if write itself returns an error,
// there are no commands. Only tasks may call it.
func (g *Guard) write(ctx context.Context, calls []*script.Call) ([]*redis.Cmd, error) {
	if g.acks != nil {
		cmds, _ := g.acks.Run(context.WithoutCancel(ctx), calls)
		return cmds, nil
	}
	return bounded(ctx, g, func(ctx context.Context) ([]*redis.Cmd, error) {
		return script.RunAll(ctx, g.rdb, calls), nil
	})
}

// writeOne is write for one call.
func (g *Guard) writeOne(ctx context.Context, call *script.Call) (*redis.Cmd, error) {
	if g.acks != nil {
		cmds, _ := g.acks.Run(context.WithoutCancel(ctx), []*script.Call{call})
		return cmds[0], cmds[0].Err()
	}
	return bounded(ctx, g, func(ctx context.Context) (*redis.Cmd, error) {
		cmd := call.Run(ctx, g.rdb)
		return cmd, cmd.Err()
	})
}
