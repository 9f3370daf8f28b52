package acl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/serverinfo"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Patience bounds a check whose context has no deadline.
const Patience = 10 * time.Second

// Patiently bounds ctx by Patience unless it has a deadline.
func Patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, left(ctx))
}

// left is for how long a check may go on.
func left(ctx context.Context) time.Duration {
	if end, bounded := ctx.Deadline(); bounded {
		return time.Until(end)
	}
	return Patience
}

const (
	slow     = 50 * time.Millisecond // a round trip: then a check may take too long, and nothing is refused
	diagnose = 2 * time.Second       // how long to find that out
)

// Explain adds its cause to the error of a check whose time was over: Redis is slow, or does not answer.
func Explain(ctx context.Context, tasks lifecycle.Tasks, rdb script.Processor, err error) error {
	var late net.Error // a client's own time-out; the end of a context is one, too
	if _, answered := script.Answer(err); answered || !errors.As(err, &late) || !late.Timeout() {
		return err
	}
	trip := diagnose
	silent := lifecycle.Within(context.WithoutCancel(ctx), tasks, diagnose, func(ctx context.Context) error {
		for range 2 { // the first one may have to connect
			began := time.Now()
			if err := send(ctx, rdb, "TIME"); !isAnswer(err) && !isRefusal(err) {
				return err
			}
			trip = min(trip, time.Since(began))
		}
		return nil
	})
	switch {
	case silent != nil:
		return fmt.Errorf("redis does not answer: %w", err)
	case trip > slow:
		return fmt.Errorf("redis is slow, as a round trip takes %v: nothing was refused, the time was over: %w", trip.Round(time.Millisecond), err)
	}
	return err
}

// Name names a key, lock or counter that nobody else knows, to try things on.
func Name() string { return "self-check:" + rand.Text() }

// SelfCheck checks for the set's package: the user's rights, then what else there is to try, and that Redis evicts no
// keys. It returns the first error.
func (s Set) SelfCheck(
	ctx context.Context, tasks lifecycle.Tasks, rdb script.Processor, prefix string, tries ...func(context.Context) error,
) error {
	ctx, cancel := Patiently(ctx)
	defer cancel()
	err := s.Check(ctx, tasks, rdb, prefix)
	evicts := func(ctx context.Context) error {
		return lifecycle.Within(ctx, tasks, left(ctx), func(ctx context.Context) error { return serverinfo.Evicts(ctx, rdb) })
	}
	for _, try := range append(tries, evicts) {
		if err == nil {
			err = try(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: self-check: %w", s.Package, Explain(ctx, tasks, rdb, err))
	}
	return nil
}

// Check tries each command of the set on a key of its own that does not exist, and returns what was refused, by name.
// When Redis cannot be used at all it says why as soon as the client does: neither the client's retries nor a time-out
// of the caller's stand between.
func (s Set) Check(ctx context.Context, tasks lifecycle.Tasks, rdb script.Processor, prefix string) error {
	return lifecycle.Within(ctx, tasks, left(ctx), func(ctx context.Context) error { return s.try(ctx, rdb, keys.Tagged(prefix, Name())) })
}

func (s Set) try(ctx context.Context, rdb script.Processor, key string) error {
	var refused []string // commands
	var why, whyKeys error
	for _, command := range s.Commands {
		if command == "SUBSCRIBE" || command == "PUBLISH" {
			continue // see Channel
		}
		if command == "LPUSH" && (slices.Contains(refused, "DEL") || whyKeys != nil) {
			continue // what it makes could not be removed
		}
		err := send(ctx, rdb, attempt(command, key)...)
		switch {
		case isRefusal(err) && isAboutKeys(err):
			whyKeys = err
		case isRefusal(err):
			refused, why = append(refused, command), err
		case !isAnswer(err):
			return fmt.Errorf("cannot use Redis, at %s: %w", command, err)
		case command == "LPUSH":
			_ = send(ctx, rdb, "DEL", key) // was tried before
		}
	}
	var problems []error
	if whyKeys != nil {
		problems = append(problems, fmt.Errorf("redis refuses the user keys such as %q: %w", key, whyKeys))
	}
	if why != nil {
		problems = append(problems, fmt.Errorf("redis refuses the user %s: %w", strings.Join(refused, ", "), why))
	}
	return errors.Join(problems...)
}

func send(ctx context.Context, rdb script.Processor, args ...any) error {
	return script.Send(ctx, script.Once(rdb), args...).Err()
}

// isAnswer reports whether a command was let through: what is tried is often wrong on purpose, so that nothing is
// written.
func isAnswer(err error) bool {
	return err == nil || script.IsNil(err) || script.Says(err, "ERR ", "WRONGTYPE ", "NOSCRIPT ")
}

// isRefusal reports whether Redis does not let the user do that, or has no such command.
func isRefusal(err error) bool { return script.Says(err, "NOPERM ", "ERR unknown command") }

// isAboutKeys reports whether a refusal is not about the command, but about its keys.
func isAboutKeys(err error) bool {
	return strings.Contains(err.Error(), "access") && strings.Contains(err.Error(), "key")
}

// attempt is the command on a key that does not exist, with as many arguments as Redis wants before it looks at rights,
// and so that it makes none (but LPUSH).
func attempt(command, key string) []any {
	args := map[string][]any{
		"EVAL":    {"return 1", 1, key},
		"EVALSHA": {strings.Repeat("0", 40), 1, key},
		"TIME":    {},

		"GETRANGE": {key, 0, 0}, "SET": {key, "", "NEVER"}, "SETRANGE": {key, 0, ""},
		"HDEL": {key, "f"}, "HEXISTS": {key, "f"}, "HGET": {key, "f"}, "HINCRBY": {key, "f", "none"}, "HMGET": {key, "f"},
		"HSET":  {key, "f", "", "odd"},
		"LPUSH": {key, ""}, "LPOS": {key, ""}, "LTRIM": {key, 0, 0},
		"PEXPIRE": {key, 1}, "PEXPIREAT": {key, 1},
		"ZADD": {key, "none", "m"}, "ZRANGE": {key, 0, 0}, "ZRANGEBYSCORE": {key, 0, 0}, "ZREM": {key, "m"},
		"ZREMRANGEBYSCORE": {key, 0, 0}, "ZREVRANGE": {key, 0, 0}, "ZSCORE": {key, "m"},
	}
	if more, ok := args[command]; ok {
		return append([]any{command}, more...)
	}
	return []any{command, key}
}
