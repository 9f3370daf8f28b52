package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// ledger is a hook that notes the keys of all scripts and of SET. Every script of the library names every key that it may touch.
type ledger struct {
	mu   sync.Mutex
	keys map[string]bool
}

// DialHook is one of redis.Hook's.
func (*ledger) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is one of redis.Hook's.
func (l *ledger) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		l.note(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook is one of redis.Hook's.
func (l *ledger) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			l.note(cmd)
		}
		return next(ctx, cmds)
	}
}

func (l *ledger) note(cmd redis.Cmder) {
	args := cmd.Args()
	var written []any
	switch name := cmd.Name(); {
	case name == "set" && len(args) > 1:
		written = args[1:2]
	case (name == "eval" || name == "evalsha") && len(args) > 3:
		if n, is := args[2].(int); is && n >= 0 && n <= len(args)-3 {
			written = args[3 : 3+n]
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range written {
		if key, is := key.(string); is {
			if l.keys == nil {
				l.keys = make(map[string]bool)
			}
			l.keys[key] = true
		}
	}
}

// remove deletes all of them, whatever node has them.
func (l *ledger) remove(ctx context.Context, rdb redis.Cmdable) error {
	l.mu.Lock()
	var all []string
	for key := range l.keys {
		all = append(all, key)
	}
	l.mu.Unlock()
	var errs []error
	for some := range slices.Chunk(all, 500) {
		pipe := rdb.Pipeline()
		for _, key := range some {
			pipe.Del(ctx, key)
		}
		_, err := pipe.Exec(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
