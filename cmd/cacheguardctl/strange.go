package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/redis/keys"
)

// epochs is of how many numbers an epoch may have its key: see internal/cache/epoch. Six of the first ones are used at most.
const epochs = 64

// strange says that nobody seems to use the prefix, which may be mistyped; empty: somebody does, or it is not known. With pages, they say so, and a
// command about something else does not need the prefix.
func (e *env) strange(command string) string {
	a := e.all
	pages := slices.Concat(a.Check.Page, a.Inspect.Page, a.Invalidate.Page, a.Bypass.Page, a.Watch.Page, a.Stats.Page)
	if len(pages) > 0 || strings.HasPrefix(command, "locks") || strings.HasPrefix(command, "size") || !e.unheard() {
		return ""
	}
	return fmt.Sprintf("no process has subscribed to a channel of the prefix %q: no instance that has it has loaded anything since it began, or --prefix is wrong", a.Prefix)
}

// unheard reports whether no node knows a process that listens to a channel of the prefix. If the user may not ask that, it looks for what every load
// leaves.
func (e *env) unheard() bool {
	var heard, refused atomic.Bool
	literally := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)
	inboxes := literally.Replace(e.all.Prefix) + keys.Inboxes + "*"
	err := e.eachNode(func(ctx context.Context, rdb *redis.Client) error {
		some, err := rdb.PubSubChannels(ctx, inboxes).Result()
		tiers, unsaid := rdb.PubSubNumSub(ctx, channel(e)).Result()
		if err != nil || unsaid != nil {
			refused.Store(true)
		}
		if len(some) > 0 || tiers[channel(e)] > 0 {
			heard.Store(true)
		}
		return nil
	})
	if !heard.Load() && (err != nil || refused.Load()) {
		there, err := e.has(epoch.All)
		return err == nil && !there
	}
	return !heard.Load()
}

// has reports whether there is an epoch of the name, without which no entry that has the name is valid.
func (e *env) has(name string) (bool, error) {
	pipe := e.rdb.Pipeline()
	var found []*redis.IntCmd
	for n := range epochs {
		key := e.all.Prefix + ":{" + strconv.Itoa(n) + "}:epoch"
		if name != epoch.All {
			key += ":" + name[:1] + ":" + name[1:]
		}
		found = append(found, pipe.Exists(e.ctx, key))
	}
	if _, err := pipe.Exec(e.ctx); err != nil {
		return false, err
	}
	return slices.ContainsFunc(found, func(cmd *redis.IntCmd) bool { return cmd.Val() > 0 }), nil
}

// eachNode looks at each node, replicas included.
func (e *env) eachNode(look func(context.Context, *redis.Client) error) error {
	if cluster, is := e.rdb.(*redis.ClusterClient); is {
		return cluster.ForEachShard(e.ctx, look)
	}
	return look(e.ctx, e.rdb.(*redis.Client))
}
