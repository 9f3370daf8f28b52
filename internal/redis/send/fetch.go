package send

import (
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
)

// replies are what Redis has for the keys of a request.
type replies struct {
	found []string // to MGET
	each  []answer // to anything else
	err   error    // there are none
}

// answer is what Redis has for a key.
type answer struct {
	raw []byte
	err error
}

// of is the answer for the i-th key. In a reply to MGET, what is absent reads as what is empty. Neither is an entry,
// and an acquire tells them apart.
func (r *replies) of(i int) (a answer) {
	switch {
	case r.err != nil:
		a.err = r.err
	case r.each != nil:
		a = r.each[i]
	case r.found[i] != "":
		a.raw = bytesOf(r.found[i])
	}
	return a
}

// fetch reads the keys: one with GET; several with MGET where one server has them all, else with a pipeline, which a
// cluster or ring client splits by node.
func (g *reads) fetch(ctx context.Context) replies {
	l := g.lane.link
	if g.len() == 1 {
		return replies{each: append(g.room.answer[:0], get(ctx, l.rdb, g.all[0].key))}
	}
	if l.mget.Load() {
		if r, ok := g.fetchByMGET(ctx); ok {
			return r
		}
	}
	return replies{each: g.fetchByPipeline(ctx)}
}

func get(ctx context.Context, rdb script.Processor, key string) answer {
	cmd := redis.NewStringCmd(ctx, "get", key)
	_ = rdb.Process(ctx, cmd) // the command keeps its error
	return answerOf(cmd.Result())
}

// key is the i-th key that the parcel reads.
func (g *reads) key(i int) string {
	if i < len(g.all) {
		return g.all[i].key
	}
	return g.beside.keys[i-len(g.all)]
}

// fetchByMGET reports false when the server does not let us: what looks like one server may be a proxy before many, or
// the user may have no right to MGET.
func (g *reads) fetchByMGET(ctx context.Context) (r replies, ok bool) {
	cmd := &g.room.mget
	*cmd = *redis.NewStringSliceCmd(ctx, g.mget()...)
	err := g.lane.link.rdb.Process(ctx, cmd)
	if script.Says(err, "CROSSSLOT", "NOPERM", "unknown command") || err == nil && len(cmd.Val()) != g.len() {
		g.lane.link.mget.Store(false)
		return r, false
	}
	return replies{found: cmd.Val(), err: err}, true
}

// mget is the command that reads all.
func (g *reads) mget() []any {
	args := append(slices.Grow(g.room.args[:0], 1+g.len()), "mget")
	for i := range g.len() {
		args = append(args, g.key(i))
	}
	return args
}

func (g *reads) fetchByPipeline(ctx context.Context) []answer {
	cmds := make([]*redis.Cmd, g.len())
	pipe := g.lane.link.rdb.Pipeline()
	for i := range cmds {
		cmds[i] = redis.NewCmd(ctx, "get", g.key(i))
		_ = pipe.Process(ctx, cmds[i]) // only queues
	}
	script.Exec(ctx, pipe)
	answers := make([]answer, len(cmds))
	for i, cmd := range cmds {
		answers[i] = answerOf(cmd.Text())
	}
	return answers
}

// answerOf tells absence from failure. A key that holds no string holds nothing of ours: it is there, with no content.
func answerOf(found string, err error) (a answer) {
	switch {
	case err == nil && found != "":
		a.raw = bytesOf(found)
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
