package script

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// errUnanswered is for a command that the client has neither sent nor failed.
var errUnanswered = errors.New("redis: the client did not send the command, and does not say why")

// Exec runs a pipeline. Afterwards each command has its reply or its error. go-redis (9.23) leaves commands with
// neither if Redis refuses what a new connection says first: a password that was changed, a database that it may not
// use, a full server. To its callers that would be success. The commands are *redis.Cmd: others do not tell that they
// have no reply.
func Exec(ctx context.Context, pipe redis.Pipeliner) {
	cmds, err := pipe.Exec(ctx)
	if err == nil || slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
		err = errUnanswered // what the pipeline says is about another command
	}
	for _, cmd := range cmds {
		if cmd.Err() == nil && isUnanswered(cmd) {
			cmd.SetErr(err)
		}
		explain(cmd)
	}
}

func isUnanswered(cmd redis.Cmder) bool {
	c, is := cmd.(interface{ Val() any })
	return is && c.Val() == nil
}
