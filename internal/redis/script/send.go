package script

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Reply is the reply to a call or a command, and its error.
type Reply = redis.Cmd

// Send runs a plain command: its name and its arguments.
func Send(ctx context.Context, rdb Processor, args ...any) *Reply {
	reply := redis.NewCmd(ctx, args...)
	if err := rdb.Process(ctx, reply); err != nil && reply.Err() == nil { // go-redis' own clients tell the reply, too
		reply.SetErr(err)
	}
	return reply
}

// Answer is the text with which Redis itself answered, if the error is that: "redis: nil" where there is nothing. Anything else is
// no answer.
func Answer(err error) (text string, ok bool) {
	answer, ok := errors.AsType[redis.Error](err)
	if !ok {
		return "", false
	}
	return answer.Error(), true
}

// lacking is the answer to a script with a command that the user may not run. Redis 7.0 says neither NOPERM nor which.
type lacking struct{ answer string }

func (l lacking) Error() string {
	return "NOPERM the user lacks the right to a command of this script, `cacheguardctl check`, as this user, names it: " + l.answer
}

// RedisError marks it as an answer.
func (lacking) RedisError() {}

// explain says what to do where Redis does not.
func explain(cmd redis.Cmder) {
	if answer, _ := Answer(cmd.Err()); strings.Contains(answer, "executing the script can't run this command") {
		cmd.SetErr(lacking{answer})
	}
}

// IsNil reports whether Redis answered that there is nothing.
func IsNil(err error) bool { return errors.Is(err, redis.Nil) }

// Says reports whether Redis answered with an error that begins with one of these words, also where a server that imitates Redis puts ERR
// before them.
func Says(err error, words ...string) bool {
	text, ok := Answer(err)
	return ok && slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(text, w) || strings.HasPrefix(strings.TrimPrefix(text, "ERR "), w)
	})
}
