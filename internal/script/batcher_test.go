package script

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

// pipelines counts the pipelines that a client sends.
type pipelines struct{ count atomic.Int64 }

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" { // not of a new connection
			p.count.Add(1)
		}
		return next(ctx, cmds)
	}
}

var echo = New("return ARGV[1]")

// While one pipeline is held up, calls gather for the next.
func TestCallsOfABatcherThatAreMadeMeanwhileShareAPipeline(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr())
	rdb := proxy.Client(t)
	sent := new(pipelines)
	rdb.AddHook(sent)
	call := func(i int) *Call { return &Call{Script: echo, Keys: []string{"k"}, Args: []any{strconv.Itoa(i)}} }
	first := call(0)
	if err := first.Run(t.Context(), rdb).Err(); err != nil { // now the server knows the script
		t.Fatal(err)
	}
	b := NewBatcher(rdb)
	held := proxy.On(redistest.Command("evalsha"), redistest.Hold).Times(1)
	var wg sync.WaitGroup
	run := func(i int) {
		if got, err := b.Run(t.Context(), call(i)).Text(); err != nil || got != strconv.Itoa(i) {
			t.Errorf("call %d: %q, %v", i, got, err)
		}
	}
	wg.Go(func() { run(0) })
	<-held.Hit()
	for i := range 2*maxCalls + 1 {
		wg.Go(func() { run(i) })
	}
	redistest.Await(t, "all calls wait", func() bool { return b.queued() == 2*maxCalls+1 })
	held.Release()
	wg.Wait()
	if n := sent.count.Load(); n != 4 {
		t.Errorf("%d pipelines", n)
	}
	if b.queued() != 0 || b.sending {
		t.Error("the batcher is not at rest")
	}
}
