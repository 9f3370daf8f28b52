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
