package script

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Once returns a Processor that sends a command only once, where go-redis would send it again when the reply is lost.
// So its caller knows that a command which is answered ran for the first time.
func Once(rdb Processor) Processor { return once{rdb} }

type once struct{ rdb Processor }

func (o once) Process(ctx context.Context, cmd redis.Cmder) error {
	if c, ok := cmd.(*redis.Cmd); ok {
		cmd = notAgain{c}
	}
	return o.rdb.Process(ctx, cmd)
}

// OncePipeliner is Once for pipelines: one with a command that may not be sent again is not sent again.
func OncePipeliner(rdb Pipeliner) Pipeliner { return oncePipeliner{rdb} }

type oncePipeliner struct{ rdb Pipeliner }

func (o oncePipeliner) Pipeline() redis.Pipeliner { return oncePipeline{o.rdb.Pipeline()} }

type oncePipeline struct{ redis.Pipeliner }

func (p oncePipeline) Process(ctx context.Context, cmd redis.Cmder) error {
	return once{p.Pipeliner}.Process(ctx, cmd)
}

// notAgain is a command that is not sent again.
type notAgain struct{ *redis.Cmd }

// NoRetry is asked by go-redis.
func (notAgain) NoRetry() bool { return true }
