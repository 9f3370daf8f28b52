package backends

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Commands counts what clients ask of Redis, as a hook of theirs: a command in a pipeline counts like any other, a script
// counts as one. It is a go-redis hook, because the embedded Redis keeps no statistics. What a subscription sends passes
// hooks by: a Guard has one, which sends a command now and then.
type Commands struct{ sent atomic.Int64 }

// Sent returns how many were asked so far.
func (c *Commands) Sent() int64 { return c.sent.Load() }

// DialHook is part of redis.Hook.
func (c *Commands) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook counts a command.
func (c *Commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts the commands of a pipeline.
func (c *Commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.sent.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
