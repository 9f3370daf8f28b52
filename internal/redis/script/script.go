// Package script runs Lua scripts by their hash, alone or in a pipeline, and sends the source when the server has
// forgotten it: scripts vanish on a restart, a failover and SCRIPT FLUSH, and a pipeline has no fallback of its own.
package script

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name Redis gives a script is its SHA-1
	"encoding/hex"
	"time"

	"github.com/redis/go-redis/v9"
)

// Processor runs one command.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Pipeliner makes pipelines.
type Pipeliner interface {
	Pipeline() redis.Pipeliner
}

// The commands, as arguments.
var evalsha, eval any = "evalsha", "eval"

// Script is a Lua script, or a command in place of one. It is immutable.
type Script struct {
	src, sha string
	hash     any // sha, as an argument
	command  any // which takes the keys and arguments; nil: it is a script
}

// New makes a Script from its source, which may call publish(channel, message): if Redis refuses that, the process
// publishes.
func New(src string) *Script {
	src = withPublish(src)
	sum := sha1.Sum([]byte(src)) //nolint:gosec // see the import
	sha := hex.EncodeToString(sum[:])
	return &Script{src: src, sha: sha, hash: sha}
}

// Command makes of a plain command what can be sent where a Script can. It costs the server a third of what a script
// does.
func Command(name string) *Script { return &Script{command: name} }

// Source is the text that the script was made from; empty if there is no script.
func (s *Script) Source() string {
	if s == nil {
		return ""
	}
	return s.src
}

// Call is one run of a script: all its keys must share a cluster slot.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any

	Alone *Call // does what the caller needs most by one key, where Redis refuses to run the script because its keys are Torn apart; nil: nothing does
}

// Run runs the call: one round trip, one more when the server does not know the script, and one when it refuses a
// message.
func (c *Call) Run(ctx context.Context, rdb Processor) *redis.Cmd {
	cmd := c.bySHA(ctx)
	err := rdb.Process(ctx, cmd)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = c.bySource(ctx)
		_ = rdb.Process(ctx, cmd) // the command keeps its error
	}
	for _, p := range unpublished(ctx, cmd) {
		_ = rdb.Process(ctx, p) // waiters have timers
	}
	explain(cmd)
	return cmd
}

// RunAll runs the calls in one pipeline, again by source those whose script the server does not know, and publishes
// what was refused. The commands keep their own results and errors, in the order of the calls.
func RunAll(ctx context.Context, rdb Pipeliner, calls []*Call) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(calls))
	pipe := rdb.Pipeline()
	for i, c := range calls {
		cmds[i] = c.bySHA(ctx)
		_ = pipe.Process(ctx, cmds[i]) // only queues
	}
	Exec(ctx, pipe)

	for i, c := range calls {
		if err := cmds[i].Err(); err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			cmds[i] = c.bySource(ctx)
			_ = pipe.Process(ctx, cmds[i]) // only queues
		}
	}
	if pipe.Len() > 0 {
		Exec(ctx, pipe)
	}
	PublishAll(ctx, pipe, cmds...)
	return cmds
}

// Command is the call as a command, for a pipeline of the caller's: by its hash, or by its source.
func (c *Call) Command(ctx context.Context, bySource bool) *redis.Cmd {
	if bySource {
		return c.bySource(ctx)
	}
	return c.bySHA(ctx)
}

func (c *Call) bySHA(ctx context.Context) *redis.Cmd {
	return c.command(ctx, evalsha, c.Script.hash)
}

func (c *Call) bySource(ctx context.Context) *redis.Cmd {
	return c.command(ctx, eval, c.Script.src)
}

func (c *Call) command(ctx context.Context, name, script any) *redis.Cmd {
	args := make([]any, 0, 3+len(c.Keys)+len(c.Args))
	if c.Script.command != nil {
		args = append(args, c.Script.command)
	} else {
		args = append(args, name, script, len(c.Keys))
	}
	for _, key := range c.Keys {
		args = append(args, key)
	}
	return redis.NewCmd(ctx, append(args, c.Args...)...)
}

// Duration is the inverse of Millis. Numbers that nobody means, which others may have written to Redis, become the
// longest durations that can be added to.
func Duration(millis int64) time.Duration {
	const longest = 1 << 42 // a century
	return time.Duration(min(max(millis, -longest), longest)) * time.Millisecond
}

// Millis is a duration as scripts take it. It rounds up, so that no duration becomes none.
func Millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
