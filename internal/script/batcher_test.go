package script

import (
	"context"
	"strconv"
	"strings"
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

func echoed(i int) *Call {
	return &Call{Script: echo, Keys: []string{"k"}, Args: []any{strconv.Itoa(i)}}
}

// batching is a batcher whose requests a proxy may hold up.
type batching struct {
	*Batcher
	t       *testing.T
	sent    pipelines
	proxy   *redistest.Proxy
	all     sync.WaitGroup
	carried atomic.Int64
}

func newBatching(t *testing.T, lanes, most int) *batching {
	b := &batching{t: t, proxy: redistest.StartProxy(t, redistest.Start(t).Addr())}
	rdb := b.proxy.Client(t)
	rdb.AddHook(&b.sent)
	if err := echoed(0).Run(t.Context(), rdb).Err(); err != nil { // now the server knows the script
		t.Fatal(err)
	}
	b.Batcher = NewBatcher(rdb, lanes, most)
	return b
}

// run makes so many calls at once, and waits until so many of them wait.
func (b *batching) run(n, waiting int) {
	for i := range n {
		p := b.Place(echoed(i))
		b.all.Go(func() {
			if ready := p.Ready(); ready != nil {
				<-ready
			}
			b.finish(b.t.Context(), p, i)
		})
	}
	redistest.Await(b.t, "calls wait", func() bool { return b.Waiting() == uint64(waiting) })
}

func (b *batching) finish(ctx context.Context, p *Place, i int) {
	if got, err := p.Run(ctx).Text(); err != nil || got != strconv.Itoa(i) {
		b.t.Errorf("call %d: %q, %v", i, got, err)
	}
	if p.Carried() {
		b.carried.Add(1)
	}
}

func (b *batching) expect(pipelines, carried int64) {
	b.t.Helper()
	b.all.Wait()
	if n, c := b.sent.count.Load(), b.carried.Load(); n != pipelines || c != carried {
		b.t.Errorf("%d pipelines and %d carried, want %d and %d", n, c, pipelines, carried)
	}
	redistest.Await(b.t, "the batcher is at rest", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.queue) == 0 && b.sending == 0
	})
}

func TestCallsThatAreMadeWhileAllRequestsAreUnderWayShareTheNext(t *testing.T) {
	t.Parallel()
	const most = 8
	b := newBatching(t, 1, most)
	held := b.proxy.On(redistest.Command("evalsha"), redistest.Hold).Times(1)
	b.run(1, 0)
	<-held.Hit()
	b.run(2*most+2, 2*most+2)
	held.Release()
	b.expect(3, 2*most+2-3)
}

func TestARequestThatIsHeldUpHoldsUpNoOtherLane(t *testing.T) {
	t.Parallel()
	const lanes, most = 3, 8
	b := newBatching(t, lanes, most)
	first := b.proxy.On(redistest.Command("evalsha"), redistest.Hold).Times(lanes - 1)
	b.run(lanes-1, 0)
	redistest.Await(t, "two are held", func() bool { return first.Count() == lanes-1 })
	last := b.proxy.On(redistest.Command("evalsha"), redistest.Hold).Times(1)
	b.run(1, 0)
	<-last.Hit()
	b.run(most, most)
	last.Release()
	redistest.Await(t, "the others are done", func() bool { return b.Waiting() == 0 && b.carried.Load() == most-1 })
	first.Release()
	b.expect(1, most-1)
}

func TestACallAloneNeedsNoPipeline(t *testing.T) {
	t.Parallel()
	b := newBatching(t, 2, 8)
	for range 3 {
		b.run(1, 0)
		b.all.Wait()
	}
	b.expect(0, 0)
}

func TestWhoGivesUpHoldsUpNoLane(t *testing.T) {
	t.Parallel()
	b := newBatching(t, 1, 8)
	held := b.proxy.On(redistest.Command("evalsha"), redistest.Hold).Times(1)
	first := b.Place(echoed(0))
	b.all.Go(func() { b.finish(t.Context(), first, 0) })
	<-held.Hit()
	b.run(3, 3)
	first.Quit()
	redistest.Await(t, "the others are done", func() bool { return b.carried.Load() == 2 })
	held.Release()
	b.expect(1, 2)
}

func TestWhoLeavesTheQueueGoesAlone(t *testing.T) {
	t.Parallel()
	b := newBatching(t, 1, 8)
	busy, second, third := b.Place(echoed(1)), b.Place(echoed(2)), b.Place(echoed(3))
	second.Leave()
	b.finish(t.Context(), second, 2) // though the lane is taken
	b.finish(t.Context(), busy, 1)
	third.Leave() // too late: it was carried
	b.finish(t.Context(), third, 3)
	b.expect(1, 1)
}

func TestWhoQuitsGivesTheLaneToTheNext(t *testing.T) {
	t.Parallel()
	b := newBatching(t, 1, 8)
	busy, second := b.Place(echoed(1)), b.Place(echoed(2))
	second.Leave()
	b.run(1, 1)
	second.Quit() // it has none
	busy.Quit()
	b.expect(0, 0)
}

// Go-redis sends a command again when it gets such an error alone, but in a pipeline only if the first one does.
func TestACallThatARequestFailsForAMomentIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"TRYAGAIN keys are moving", "CLUSTERDOWN Hash slot not served", "READONLY You can't write"} {
		b := newBatching(t, 1, 8)
		refused := b.proxy.On(func(args []string) bool { return args[0] == "evalsha" && args[len(args)-1] == "2" },
			redistest.ReplyError(message)).Times(1)
		busy := b.Place(echoed(0))
		b.run(4, 4)
		b.finish(t.Context(), busy, 0)
		b.expect(1, 4)
		if refused.Count() != 1 {
			t.Error(message, "was not the reply")
		}
	}
}

func TestWhoIsCarriedTellsOfWhatTheOtherDoesNotSee(t *testing.T) {
	t.Parallel()
	for refused, told := range map[string]bool{"12": false, "012": true} {
		b := newBatching(t, 1, 8)
		b.proxy.On(func(args []string) bool { return args[0] == "evalsha" && strings.Contains(refused, args[len(args)-1]) },
			redistest.ReplyError("OUCH"))
		first, second, third := b.Place(echoed(0)), b.Place(echoed(1)), b.Place(echoed(3))
		if second.Told() {
			t.Error("told before it was sent")
		}
		_ = first.Run(t.Context()) // with the others
		first.Quit()
		if err := second.Run(t.Context()).Err(); err == nil || second.Told() != told {
			t.Errorf("%s refused: %v, %v", refused, err, second.Told())
		}
		b.finish(t.Context(), third, 3)
		b.expect(1, 1)
	}
}
