package main

import (
	"cmp"
	"context"
	"fmt"
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

// strange notes that nobody seems to use the prefix, or this Redis, which may be mistyped; none: somebody does. The error says that nobody does, and why a
// command that writes is not run. A command about something else does not need the prefix; check compares when it has made what can be compared.
func (e *env) strange(command string) (notes []string, refused error) {
	a := e.all
	command, _, _ = strings.Cut(command, " ")
	pages := map[string][]string{ // CACHEGUARD_PAGES sets them for all commands
		"check": a.Check.Page, "inspect": a.Inspect.Page, "invalidate": a.Invalidate.Page, "bypass": a.Bypass.Page, "watch": a.Watch.Page, "stats": a.Stats.Page,
	}[command]
	writes := command == "invalidate" || command == "bypass"
	if command == "locks" || command == "size" || command == "check" && len(pages) > 0 {
		return nil, nil
	}
	if command == "watch" { // which goes on, and has no result to note it in
		notes = (&asked{a.Watch.Page}).unknown(e, nil, nil, nil)
	}
	if writes && e.noneHas(pages) {
		return nil, fmt.Errorf("%w: %s; %s", errElsewhere, noGuard(e), allTheSame)
	}
	f := e.fleet(pages)
	if writes {
		notes, refused = f.notes(e), f.refusal(e)
	} else if note := f.note(e); note != "" {
		notes = append(notes, note)
	}
	if len(f.others) > 0 {
		return notes, refused
	}
	if note := e.unheard(); note != "" && f.here == 0 {
		notes = append(notes, note)
	}
	return notes, nil
}

// unheard says that nobody seems to use the prefix here; empty: somebody does, or it is not known. All databases of a server have the same channels, so
// the database is asked for what every load leaves.
func (e *env) unheard() string {
	heard, refused, err := e.heard()
	if err != nil && !heard {
		return ""
	}
	there, err := e.has(epoch.All)
	nothing := err == nil && !there
	one, _ := e.rdb.(*redis.Client)
	switch {
	case !heard && (!refused || nothing):
		return fmt.Sprintf(
			"no process has subscribed to a channel of the prefix %q: no instance that has it has loaded anything since it began, or --prefix or REDIS_URL is wrong", e.all.Prefix,
		)
	case heard && nothing && one != nil:
		return fmt.Sprintf(
			"processes listen to channels of the prefix %q, and database %d has nothing that a load leaves: nothing was loaded since everything was invalidated, or they use another database",
			e.all.Prefix, one.Options().DB,
		)
	}
	return ""
}

// heard reports whether a process listens to a channel of the prefix, at any node, or refused: a node did not say.
func (e *env) heard() (is, refused bool, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, answerWithin) // more than that a note is not worth
	defer cancel()
	var heard, unsaid atomic.Bool
	literally := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)
	err = e.eachNode(ctx, func(ctx context.Context, rdb *redis.Client) error {
		pipe := rdb.Pipeline()
		pattern := literally.Replace(e.all.Prefix) + keys.Inboxes + "*"
		channels, counted := pipe.Do(ctx, "pubsub", "channels", pattern), pipe.Do(ctx, "pubsub", "numsub", channel(e))
		script.Exec(ctx, pipe)
		inboxes, err := channels.StringSlice()
		tiers, uncounted := counted.Slice()
		err = cmp.Or(err, uncounted)
		if len(inboxes) > 0 || len(tiers) == 2 && tiers[1] != int64(0) {
			heard.Store(true)
		}
		if isUnreachable(err) {
			return err // it may know some
		}
		if err != nil {
			unsaid.Store(true)
		}
		return nil
	})
	return heard.Load(), unsaid.Load(), err
}

// has reports whether there is an epoch of the name, without which no entry that has the name is valid.
func (e *env) has(name string) (bool, error) {
	found, err := e.onEpochs(name, "exists")
	return found > 0, err
}

// forget removes the epochs of everything.
func (e *env) forget() error {
	_, err := e.onEpochs(epoch.All, "del")
	return err
}

// onEpochs runs a command on each key that may be an epoch of the name, and adds the replies up.
func (e *env) onEpochs(name, command string) (sum int64, err error) {
	pipe := e.rdb.Pipeline()
	var sent []*redis.Cmd
	for n := range epochs {
		key := e.all.Prefix + ":{" + strconv.Itoa(n) + "}:epoch"
		if name != epoch.All {
			key += ":" + name[:1] + ":" + name[1:]
		}
		sent = append(sent, pipe.Do(e.ctx, command, key))
	}
	script.Exec(e.ctx, pipe)
	for _, cmd := range sent {
		n, failed := cmd.Int64()
		sum, err = sum+n, cmp.Or(err, failed)
	}
	return sum, err
}

// eachNode looks at each node, replicas included.
func (e *env) eachNode(ctx context.Context, look func(context.Context, *redis.Client) error) error {
	if cluster, is := e.rdb.(*redis.ClusterClient); is {
		return cluster.ForEachShard(ctx, look)
	}
	return look(ctx, e.rdb.(*redis.Client))
}
