package main

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// commands counts what clients ask of Redis: a command in a pipeline counts like any other, a script counts as one. It
// is a go-redis hook, because the embedded Redis keeps no statistics. What a subscription sends passes hooks by: a Guard
// has one, which sends a command now and then.
type commands struct{ sent atomic.Int64 }

// DialHook is part of redis.Hook.
func (c *commands) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook counts a command.
func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts the commands of a pipeline.
func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.sent.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
