package send

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/script"
)

//go:embed lua/mark.lua
var markSource string

// markScript is sent by its source each time: it is short, and a node that has forgotten it would say so too late.
var markScript = script.New(markSource)

// markTTL is how long a mark stays.
const markTTL = time.Second

// ErrNotReplicated is what a NotReplicated matches.
var ErrNotReplicated = errors.New("not acknowledged by enough replicas")

// NotReplicated says that Redis has run a script, and that too few replicas have acknowledged what it wrote.
type NotReplicated struct{ Want, Have int }

func (e *NotReplicated) Error() string {
	return fmt.Sprintf("%v: %d of %d in time", ErrNotReplicated, e.Have, e.Want)
}

// Is reports whether the target is ErrNotReplicated.
func (e *NotReplicated) Is(target error) bool { return target == ErrNotReplicated }

// RedisError marks it as an answer of Redis': the server can be reached.
func (*NotReplicated) RedisError() {}

// CheckReplicas refuses a client that does not tell which node serves a key, as WAIT could ask another one. Where want
// is 0, no replica is asked, and any client will do.
func CheckReplicas(rdb any, want int) error {
	if want <= 0 {
		return nil
	}
	return goredis.CheckNodes(rdb)
}

// acknowledged runs the calls of a parcel, which wants the acknowledgement of replicas. A call has an error if too few
// have what it wrote.
func (l *lane) acknowledged(ctx context.Context, calls []*script.Call) []*redis.Cmd {
	cmds, err := l.withTail(ctx, calls, false)
	for _, cmd := range cmds {
		if script.Says(cmd.Err(), "NOSCRIPT") {
			cmds, err = l.withTail(ctx, calls, true)
			break
		}
	}
	for _, cmd := range cmds {
		if err != nil && cmd.Err() == nil {
			cmd.SetErr(err)
		}
	}
	return cmds
}

// withTail sends the calls, a mark and WAIT on one connection. The error says why the replicas may not have what was
// written.
func (l *lane) withTail(ctx context.Context, calls []*script.Call, bySource bool) ([]*redis.Cmd, error) {
	var node goredis.Node = l.link.rdb // which may send the pipeline again: all of it
	if l.node != nil {
		node = l.node
	}
	tail := node.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = c.Command(ctx, bySource)
		_ = tail.Process(ctx, cmds[i]) // only queues
	}
	mark := script.Call{Script: markScript, Keys: []string{calls[0].Keys[0] + ":mark"}, Args: []any{script.Millis(markTTL)}}
	marked := mark.Command(ctx, true)
	_ = tail.Process(ctx, marked) // as above
	wait := redis.NewCmd(ctx, "wait", l.replicas, script.Millis(patience(node, l.link.timeout)))
	_ = tail.Process(ctx, wait) // as above
	script.Exec(ctx, tail)
	script.PublishAll(ctx, tail, cmds...)

	have, err := wait.Int()
	switch {
	case err != nil:
		return cmds, err
	case marked.Err() != nil:
		return cmds, marked.Err()
	case have < l.replicas:
		return cmds, &NotReplicated{Want: l.replicas, Have: have}
	}
	return cmds, nil
}

// patience is how long to wait for replicas: half as long as for the reply, as Redis looks only ten times a second
// whether a WAIT is over.
func patience(node goredis.Node, timeout time.Duration) time.Duration {
	if read := goredis.ReadTimeout(node); read > 0 {
		timeout = min(timeout, read)
	}
	return max(timeout/2, time.Millisecond)
}
