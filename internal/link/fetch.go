package link

import (
	"context"
	"errors"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/script"
)

// fetch reads the keys: one with GET; several with MGET where one server has them all, else with a pipeline, which a cluster
// or ring client splits by node.
func (g *reads) fetch(ctx context.Context) {
	l := g.lane.link
	switch {
	case len(g.all) == 1:
		g.answers[0] = get(ctx, l.rdb, g.all[0])
	case !l.mget.Load() || !g.fetchByMGET(ctx):
		g.fetchByPipeline(ctx)
	}
}

func get(ctx context.Context, rdb script.Processor, read *Read) answer {
	cmd := getCmd(ctx, read)
	_ = rdb.Process(ctx, cmd) // the command keeps its error
	return answerOf(cmd)
}

// getCmd is the command that reads the key.
func getCmd(ctx context.Context, read *Read) *redis.StringCmd {
	return redis.NewStringCmd(ctx, "get", read.key)
}

// fetchByMGET reports false when the server does not let us: what looks like one server may be a proxy before many, or the
// user may have no right to MGET.
func (g *reads) fetchByMGET(ctx context.Context) bool {
	args := make([]any, 1, 1+len(g.all))
	args[0] = "mget"
	unseen := g.lane.link.unseen()
	for _, read := range g.all {
		if unseen {
			args = append(args, &read.key) // by its address, which saves a copy of the string's header
		} else {
			args = append(args, read.key)
		}
	}
	// As strings: what is absent reads as what is empty. Neither is an entry, and an acquire tells them apart.
	cmd := redis.NewStringSliceCmd(ctx, args...)
	err := g.lane.link.rdb.Process(ctx, cmd)
	found := cmd.Val()
	if refusesMGET(err) || err == nil && len(found) != len(g.all) {
		g.lane.link.mget.Store(false)
		return false
	}
	for i := range g.answers {
		if err != nil {
			g.answers[i].err = err
		} else if found[i] != "" {
			g.answers[i].raw = bytesOf(found[i])
		}
	}
	return true
}

func refusesMGET(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "CROSSSLOT") || redis.HasErrorPrefix(err, "NOPERM") ||
		redis.HasErrorPrefix(err, "unknown command"))
}

func (g *reads) fetchByPipeline(ctx context.Context) {
	cmds := make([]*redis.StringCmd, len(g.all))
	pipe := g.lane.link.rdb.Pipeline()
	for i, read := range g.all {
		cmds[i] = getCmd(ctx, read)
		_ = pipe.Process(ctx, cmds[i]) // only queues
	}
	_, _ = pipe.Exec(ctx) // each command keeps its error
	for i, cmd := range cmds {
		g.answers[i] = answerOf(cmd)
	}
}

// answerOf tells absence from failure. A key that holds no string holds nothing of ours: it is there, with no content.
func answerOf(cmd *redis.StringCmd) (a answer) {
	raw, err := cmd.Bytes()
	switch {
	case err == nil && raw != nil:
		a.raw = raw
	case err == nil || redis.HasErrorPrefix(err, "WRONGTYPE"):
		a.raw = []byte{}
	case !errors.Is(err, redis.Nil):
		a.err = err
	}
	return a
}

// bytesOf is the string's bytes, not copied: nobody else has the string, and nobody changes a Read's value.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
