package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

// epochs is of how many numbers an epoch may have its key: see internal/cache/epoch. Six of the first ones are used at most.
const epochs = 64

// strange says that nobody seems to use the prefix, which may be mistyped; empty: somebody does, or it is not known. With pages, they say so, and a
// command about something else does not need the prefix.
func (e *env) strange(command string) string {
	a := e.all
	pages := slices.Concat(a.Check.Page, a.Inspect.Page, a.Invalidate.Page, a.Bypass.Page, a.Watch.Page, a.Stats.Page)
	if command == "watch" && len(pages) > 0 { // which goes on, and has no result to note it in
		return strings.Join((&asked{a.Watch.Page}).unknown(e, nil, nil, nil), "\n")
	}
	if len(pages) > 0 || strings.HasPrefix(command, "locks") || strings.HasPrefix(command, "size") || !e.unheard() {
		return ""
	}
	return fmt.Sprintf("no process has subscribed to a channel of the prefix %q: no instance that has it has loaded anything since it began, or --prefix is wrong", a.Prefix)
}

// unheard reports whether no node knows a process that listens to a channel of the prefix. If the user may not ask that, it looks for what every load
// leaves.
func (e *env) unheard() bool {
	ctx, cancel := context.WithTimeout(e.ctx, answerWithin) // more than that a note is not worth
	defer cancel()
	var heard, refused atomic.Bool
	literally := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)
	err := e.eachNode(ctx, func(ctx context.Context, rdb *redis.Client) error {
		pipe := rdb.Pipeline()
		inboxes := pipe.PubSubChannels(ctx, literally.Replace(e.all.Prefix)+keys.Inboxes+"*")
		tiers := pipe.PubSubNumSub(ctx, channel(e))
		script.Exec(ctx, pipe)
		err := cmp.Or(inboxes.Err(), tiers.Err())
		if len(inboxes.Val()) > 0 || tiers.Val()[channel(e)] > 0 {
			heard.Store(true)
		}
		if isUnreachable(err) {
			return err // it may know some
		}
		if err != nil {
			refused.Store(true)
		}
		return nil
	})
	if err != nil || heard.Load() || !refused.Load() {
		return err == nil && !heard.Load()
	}
	there, err := e.has(epoch.All)
	return err == nil && !there
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
	script.Exec(e.ctx, pipe)
	var err error
	for _, cmd := range found {
		err = cmp.Or(err, cmd.Err())
	}
	return slices.ContainsFunc(found, func(cmd *redis.IntCmd) bool { return cmd.Val() > 0 }), err
}

// eachNode looks at each node, replicas included.
func (e *env) eachNode(ctx context.Context, look func(context.Context, *redis.Client) error) error {
	if cluster, is := e.rdb.(*redis.ClusterClient); is {
		return cluster.ForEachShard(ctx, look)
	}
	return look(ctx, e.rdb.(*redis.Client))
}
