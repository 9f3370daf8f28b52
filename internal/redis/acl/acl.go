// Package acl lists the rights that a Redis user needs for each package of the library, and finds out which of them are
// missing. The table in docs/redis.md comes from it.
package acl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Set is what a user needs for a package, besides the keys that begin with its Prefix.
type Set struct {
	Package  string
	Commands []string
	Channels []string // patterns, behind the prefix; none: neither PUBLISH nor SUBSCRIBE is needed
	Optional []string // commands without which something is left out
}

const (
	scripts  = "EVAL EVALSHA "
	messages = "PUBLISH SUBSCRIBE "
	rwlock   = "DEL EXISTS HDEL HGET HINCRBY HMGET HSET PEXPIRE PTTL TIME ZADD ZCARD ZRANGE ZRANGEBYSCORE ZREM " +
		"ZREMRANGEBYSCORE ZREVRANGE ZSCORE "

	inboxes = keys.Inboxes + "*"
)

// The rights that the packages need. SelfCheck looks at each, and a test at each command of their scripts.
var (
	// Guard has what rwlock needs, too: Update uses it.
	Guard = set("cacheguard", scripts+messages+rwlock+"GET GETRANGE HEXISTS HGETALL MGET SET SETRANGE").with(inboxes, keys.Notices).may("STRLEN")

	Mutex = set("mutex", scripts+messages+
		"DEL HDEL HGET HGETALL HINCRBY HMGET HSET PEXPIRE PTTL TIME ZADD ZCARD ZPOPMIN ZREM ZREMRANGEBYSCORE ZSCORE").with(inboxes).may("INFO")
	RWLock = set("rwlock", scripts+messages+rwlock).with(inboxes).may("INFO")

	Semaphore = set("semaphore", scripts+messages+
		"DEL HDEL HGET HMGET HSET PEXPIRE PTTL TIME ZADD ZCARD ZRANGE ZRANGEBYSCORE ZREM ZREMRANGEBYSCORE ZREVRANGE ZSCORE").
		with(inboxes).may("INFO")

	CAS     = set("cas", scripts+"DEL GET GETRANGE LLEN LPOS LPUSH LTRIM PEXPIRE SET").may("INFO")
	Segment = set("segment", scripts+"DEL EXISTS GET HDEL HGET HGETALL HINCRBY HSET PEXPIREAT SET TIME").may("INFO")
)

// All are the sets of all packages.
func All() []Set { return []Set{Guard, Mutex, RWLock, Semaphore, CAS, Segment} }

// Cluster are the commands that tell a cluster client which node serves which slots.
func Cluster() []string { return []string{"CLUSTER|SLOTS", "COMMAND"} }

func set(name, commands string) Set { return Set{Package: name, Commands: sorted(commands)} }

func (s Set) with(channels ...string) Set {
	s.Channels = channels
	return s
}

// may has optional commands: INFO lets the SelfCheck of what must not lose keys ask whether Redis evicts them, STRLEN
// lets Inspect say how large an entry is.
func (s Set) may(commands ...string) Set {
	s.Optional = commands
	return s
}

// ACL are the rules of a user that may do just this, under the prefix, as ACL SETUSER takes them.
func (s Set) ACL(prefix string) []string {
	rules := []string{"resetkeys", "~" + prefix + ":*", "resetchannels"}
	for _, channel := range s.Channels {
		rules = append(rules, "&"+prefix+channel)
	}
	rules = append(rules, "-@all")
	for _, command := range s.Commands {
		rules = append(rules, "+"+strings.ToLower(command))
	}
	return rules
}

func sorted(commands string) []string {
	return slices.Compact(slices.Sorted(slices.Values(strings.Fields(commands))))
}

// CheckChannel subscribes to the channel with a connection of its own, and publishes an empty message to it.
func CheckChannel(ctx context.Context, tasks lifecycle.Tasks, rdb script.Processor, channel string) error {
	return lifecycle.Within(ctx, tasks, left(ctx), func(ctx context.Context) error { return tryChannel(ctx, rdb, channel) })
}

func tryChannel(ctx context.Context, rdb script.Processor, channel string) error {
	sub := goredis.Subscribe(ctx, rdb, channel)
	defer sub.Close()
	if _, err := sub.Receive(ctx, left(ctx)); err != nil {
		return refusedOn("SUBSCRIBE", channel, err)
	}
	if err := send(ctx, rdb, "PUBLISH", channel, ""); err != nil {
		return refusedOn("PUBLISH", channel, err)
	}
	return nil
}

func refusedOn(command, channel string, err error) error {
	if isRefusal(err) {
		return fmt.Errorf("redis refuses the user %s on the channel %q: %w", command, channel, err)
	}
	return fmt.Errorf("cannot %s on the channel %q: %w", command, channel, err)
}
