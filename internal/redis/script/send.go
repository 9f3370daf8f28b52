package script

import (
	"context"
	"errors"
	"fmt"
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

// Number is a part of a reply; 0 if there is none, or if it is no number.
func Number(reply []any, i int) int64 { return part[int64](reply, i) }

// String is a part of a reply; empty if there is none, or if it is no text.
func String(reply []any, i int) string { return part[string](reply, i) }

func part[T any](reply []any, i int) (p T) {
	if i < len(reply) {
		p, _ = reply[i].(T)
	}
	return p
}

// Fields are the fields of a hash, with a client of either version of Redis' protocol.
func Fields(reply any) map[string]string {
	fields := make(map[string]string)
	switch reply := reply.(type) {
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			fields[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
		}
	case map[any]any:
		for name, value := range reply {
			fields[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	}
	return fields
}
