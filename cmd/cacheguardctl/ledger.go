package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// after is a hook that is called after each command.
type after func(cmd redis.Cmder)

// DialHook is one of redis.Hook's.
func (after) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is one of redis.Hook's.
func (f after) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer f(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook is one of redis.Hook's.
func (f after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer func() {
			for _, cmd := range cmds {
				f(cmd)
			}
		}()
		return next(ctx, cmds)
	}
}

// ledger has the keys of all scripts and of SET. Every script of the library names every key that it may touch.
type ledger struct {
	of string // what is in each key; empty: all keys

	mu   sync.Mutex
	keys map[string]bool
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
		if key, is := key.(string); is && strings.Contains(key, l.of) {
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

// untold is the first refusal of a message to the channel of the prefix, which a Guard does not return.
type untold struct {
	channel string

	mu  sync.Mutex
	why error
}

func (u *untold) note(cmd redis.Cmder) {
	args := cmd.Args()
	if cmd.Name() != "publish" || len(args) < 2 || args[1] != u.channel || isUnreachable(cmd.Err()) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.why = cmp.Or(u.why, cmd.Err())
}

// err says what it means that messages were refused; nil: none was.
func (u *untold) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.why == nil {
		return nil
	}
	const form = "not all was done: Redis has it invalidated, but local tiers were not told, and may serve old values until Local.TTL: give the user +publish and &%s, and run it again: %w"
	return fmt.Errorf(form, u.channel, u.why)
}
