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

// Answer is the text with which Redis itself answered, if the error is that: "redis: nil" where there is nothing.
// Anything else is no answer.
func Answer(err error) (text string, ok bool) {
	if err == nil { // before answer is made
		return "", false
	}
	var answer redis.Error
	if !errors.As(err, &answer) {
		return "", false
	}
	return answer.Error(), true
}

// explained is an answer of Redis behind what it means.
type explained struct{ meaning, answer string }

func (e explained) Error() string { return e.meaning + ": " + e.answer }

// RedisError marks it as an answer.
func (explained) RedisError() {}

// meanings are of answers that do not say what is wrong, by a part of their text.
var meanings = map[string]string{
	// Redis 7.0 says neither NOPERM nor which command.
	"executing the script can't run this command": "NOPERM the user lacks the right to a command of this script, `cacheguardctl check`, as this user, names it",
	// To a short command, Redis says NOAUTH.
	"Protocol error: unauthenticated": "NOAUTH the connection has no valid password",
}

// explain has the command's error begin with what it means.
func explain(cmd redis.Cmder) {
	answer, _ := Answer(cmd.Err())
	for part, meaning := range meanings {
		if strings.Contains(answer, part) {
			cmd.SetErr(explained{meaning, answer})
		}
	}
}

// IsNil reports whether Redis answered that there is nothing.
func IsNil(err error) bool { return errors.Is(err, redis.Nil) }

// Torn reports whether a cluster's node refused the call as some of its keys do not exist, or are elsewhere, while
// their slot is moved.
func Torn(err error) bool { return Says(err, "TRYAGAIN") }

// Says reports whether Redis answered with an error that begins with one of these words, also where a server that
// imitates Redis puts ERR before them.
func Says(err error, words ...string) bool {
	text, ok := Answer(err)
	return ok && slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(text, w) || strings.HasPrefix(strings.TrimPrefix(text, "ERR "), w)
	})
}

// Refused reports whether Redis refused the connection, and so has not looked at what was asked: it takes the client a
// new one each time.
func Refused(err error) bool {
	return Says(err, "NOAUTH", "WRONGPASS", "DENIED", "DB index is out of range")
}
