package cas

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

//go:embed lua/*.lua
var files embed.FS

var (
	swapScript   = script.Compile(files, "prelude", "swap")
	deleteScript = script.Compile(files, "prelude", "delete")
	get          = script.Command("get")
)

const (
	recentWrites = 4096        // as many as one key can have within RedisTimeout; 140 KB, for a key that is written so often
	recentFor    = time.Minute // much longer than any client repeats a request
)

// The replies of scripts about a write.
const (
	replyDone      = 1
	replyConflict  = 0
	replyForgotten = -1
)

// write is a change that is done at most once.
type write struct {
	old   Version
	token Version
	value []byte // what to store, which begins with the token; nil: delete
}

// swap stores the value.
func (s *Store) swap(ctx context.Context, key string, w *write) error {
	return s.write(ctx, "swap", key, w, swapScript, w.value, script.Millis(s.cfg.TTL))
}

// remove deletes the value.
func (s *Store) remove(ctx context.Context, key string, w *write) error {
	return s.write(ctx, "delete", key, w, deleteScript)
}

// write sends the write. When it has no answer to the first request, it says in the second that it may have been done already.
func (s *Store) write(ctx context.Context, op, key string, w *write, does *script.Script, more ...any) error {
	valueKey := s.valueKey(key)
	call := func(repeated int) script.Call {
		return script.Call{
			Script: does,
			Keys:   []string{valueKey, valueKey + ":recent"},
			Args: append([]any{
				string(w.old), string(w.token), repeated, s.recent, script.Millis(recentFor),
			}, more...),
		}
	}
	began := time.Now()
	answer, err := s.redis.AskOnce(ctx, call(0))
	if err != nil && time.Since(began) < s.cfg.RedisTimeout {
		answer, err = s.redis.Ask(ctx, call(1), nil)
	}
	reply := 0
	if err == nil {
		reply, err = answer.Int()
	} else if ctx.Err() != nil {
		err = lifecycle.Ended(ctx)
	}
	switch {
	case err != nil:
		return uncertain(op, key, err)
	case reply == replyDone:
		return nil
	case reply == replyConflict:
		return failed(op, key, ErrConflict)
	case reply == replyForgotten:
		return uncertain(op, key, errForgotten)
	}
	return uncertain(op, key, fmt.Errorf("unexpected reply %d", reply))
}
