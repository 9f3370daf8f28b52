package reader

import (
	"context"
	"errors"
	"unsafe"

	"github.com/redis/go-redis/v9"
)

// fetch reads the batch's keys into its answers: one key with GET; several with MGET where one server has them all, else
// with a pipeline, which a cluster or ring client splits by node.
func (w *worker) fetch(ctx context.Context) {
	w.answers = append(w.answers[:0], make([]Read, len(w.keys))...)
	switch {
	case len(w.keys) == 1:
		cmd := redis.NewStringCmd(ctx, "get", w.keys[0])
		_ = w.lane.r.rdb.Process(ctx, cmd) // the command keeps its error
		w.answers[0].set(cmd)
	case !w.lane.r.mget.Load() || !w.fetchByMGET(ctx):
		w.fetchByPipeline(ctx)
	}
}

// fetchByMGET reports false when the server does not let us: what looks like one server may be a proxy before
// many, or the user may have no right to MGET.
func (w *worker) fetchByMGET(ctx context.Context) bool {
	args := make([]any, 1, 1+len(w.keys))
	args[0] = "mget"
	for _, key := range w.keys {
		args = append(args, key)
	}
	cmd := redis.NewSliceCmd(ctx, args...)
	err := w.lane.r.rdb.Process(ctx, cmd)
	if refusesMGET(err) {
		w.lane.r.mget.Store(false)
		return false
	}
	found := cmd.Val()
	for i := range w.answers {
		if err != nil {
			w.answers[i].Err = err
		} else if s, ok := found[i].(string); ok {
			w.answers[i].Raw = bytesOf(s)
		}
	}
	return true
}

func refusesMGET(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "CROSSSLOT") || redis.HasErrorPrefix(err, "NOPERM") ||
		redis.HasErrorPrefix(err, "unknown command"))
}

func (w *worker) fetchByPipeline(ctx context.Context) {
	w.cmds = w.cmds[:0]
	pipe := w.lane.r.rdb.Pipeline()
	for _, key := range w.keys {
		cmd := redis.NewStringCmd(ctx, "get", key)
		w.cmds = append(w.cmds, cmd)
		_ = pipe.Process(ctx, cmd) // only queues
	}
	_, _ = pipe.Exec(ctx) // each command keeps its error
	for i, cmd := range w.cmds {
		w.answers[i].set(cmd)
	}
	clear(w.cmds)
}

// set tells absence from failure. A key that holds no string holds nothing of ours: it is there, with no content.
func (r *Read) set(cmd *redis.StringCmd) {
	raw, err := cmd.Bytes()
	switch {
	case err == nil && raw != nil:
		r.Raw = raw
	case err == nil || redis.HasErrorPrefix(err, "WRONGTYPE"):
		r.Raw = []byte{}
	case !errors.Is(err, redis.Nil):
		r.Err = err
	}
}

// bytesOf is the string's bytes, not copied: nobody else has the string, and nobody changes a Read's value.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
