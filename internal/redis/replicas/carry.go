package replicas

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
)

//go:embed lua/mark.lua
var markSource string

// markScript is sent by its source each time: it is short, and a node that has forgotten it would say so too late.
var markScript = script.New(markSource)

// markTTL is how long a mark stays.
const markTTL = time.Second

// carry runs the calls on one node. A call has an error if too few replicas have what it wrote.
func (s *Sender) carry(ctx context.Context, node *redis.Client, calls []*script.Call) []*redis.Cmd {
	cmds, err := s.pipeline(ctx, node, calls, false)
	if forgotten(cmds) {
		cmds, err = s.pipeline(ctx, node, calls, true)
	}
	if err == nil {
		return cmds
	}
	for _, cmd := range cmds {
		if cmd.Err() == nil {
			cmd.SetErr(err)
		}
	}
	return cmds
}

func forgotten(cmds []*redis.Cmd) bool {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			return true
		}
	}
	return false
}

// pipeline sends the calls, a mark and WAIT on one connection. The error says why the replicas may not have what was written.
func (s *Sender) pipeline(ctx context.Context, node *redis.Client, calls []*script.Call, bySource bool) ([]*redis.Cmd, error) {
	pipe := s.rdb.Pipeline
	if node != nil {
		pipe = node.Pipeline
	}
	return s.exec(ctx, pipe(), calls, bySource, s.patienceOf(node))
}

func (s *Sender) exec(
	ctx context.Context, pipe redis.Pipeliner, calls []*script.Call, bySource bool, patience time.Duration,
) ([]*redis.Cmd, error) {
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = c.Command(ctx, bySource)
		_ = pipe.Process(ctx, cmds[i]) // only queues
	}
	mark := script.Call{Script: markScript, Keys: []string{calls[0].Keys[0] + ":mark"}, Args: []any{script.Millis(markTTL)}}
	marked := mark.Command(ctx, true)
	_ = pipe.Process(ctx, marked) // as above
	acknowledged := redis.NewCmd(ctx, "wait", s.want, script.Millis(patience))
	_ = pipe.Process(ctx, acknowledged) // as above
	_, unsent := pipe.Exec(ctx)

	have, err := acknowledged.Int()
	switch {
	case acknowledged.Err() == nil && err != nil: // the client had no connection, and has told no command
		return cmds, unsent
	case err != nil:
		return cmds, err
	case marked.Err() != nil:
		return cmds, marked.Err()
	case have < s.want:
		return cmds, &Error{Want: s.want, Have: have}
	}
	return cmds, nil
}

// patienceOf is how long to wait for replicas: half as long as for the reply, as Redis looks only ten times a second whether a WAIT is
// over.
func (s *Sender) patienceOf(node *redis.Client) time.Duration {
	patience := s.timeout
	one, _ := s.rdb.(single)
	if node != nil {
		one = node
	}
	if one != nil {
		if read := one.Options().ReadTimeout; read > 0 {
			patience = min(patience, read)
		}
	}
	return max(patience/2, time.Millisecond)
}
