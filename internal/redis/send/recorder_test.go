package send

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// recorder is a hook that notes what a client sends: the keys, or the last arguments of scripts, of each command and each
// pipeline.
type recorder struct {
	mu      sync.Mutex
	batches [][]string
	piped   []bool
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.note([]redis.Cmder{cmd}, false)
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.note(cmds, true)
		return next(ctx, cmds)
	}
}

func (r *recorder) note(cmds []redis.Cmder, piped bool) {
	var batch []string
	for _, cmd := range cmds {
		switch args := cmd.Args(); cmd.Name() {
		case "get":
			batch = append(batch, args[1].(string))
		case "mget":
			for _, key := range args[1:] {
				batch = append(batch, key.(string))
			}
		case "evalsha":
			batch = append(batch, args[len(args)-1].(string))
		case "hello", "client": // of a new connection
			return
		default:
			batch = append(batch, cmd.String())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches, r.piped = append(r.batches, batch), append(r.piped, piped)
}

func (r *recorder) all() [][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.batches)
}

func (r *recorder) expect(t *testing.T, want ...[]string) {
	t.Helper()
	if got := r.all(); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// gate is a hook that holds the first command until it is opened.
type gate struct {
	once       sync.Once
	shut, open chan struct{}
}

func newGate() *gate { return &gate{shut: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.once.Do(func() {
			close(g.shut)
			<-g.open
		})
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
