package send

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// doAll begins that many calls, and returns when all wait.
func (s *stage) doAll(n int, key string) []doing {
	s.t.Helper()
	var all []doing
	for i := range n {
		all = append(all, do(s.t, s.Link, echoed(key, strconv.Itoa(i))))
	}
	return all
}

func expectEach(all []doing) {
	for i, d := range all {
		d.expect(strconv.Itoa(i))
	}
}

func TestLoneCallNeedsNoPipeline(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	for range 3 {
		do(t, s.Link, echoed("k", "v")).expect("v")
	}
	expect.Equal(t, "in a pipeline", slices.Contains(s.sent.piped, true), false)
	s.sent.expect(t, []string{"v"}, []string{"v"}, []string{"v"})
}

func TestCallsThatCannotBeSentYetShareTheNextParcels(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	release := s.occupied("k")
	all := s.doAll(2*maxCalls+2, "k")
	release()
	expectEach(all)
	var sizes []int
	for _, batch := range s.sent.all()[2:] {
		sizes = append(sizes, len(batch))
	}
	if want := []int{maxCalls, maxCalls, 2}; !slices.Equal(sizes, want) {
		t.Errorf("parcels of %v calls, want %v", sizes, want)
	}
}

func TestCallsGoByRank(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	release := s.occupied("k")
	var all []doing
	var words []string
	for i := range 3 * 40 {
		c := echoed("k", strconv.Itoa(i))
		c.Rank = Ordinary - Rank(i/40) // the most urgent last
		all = append(all, do(t, s.Link, c))
		words = append(words, c.Script.Args[0].(string))
	}
	release()
	expectEach(all)
	sent := slices.Concat(s.sent.all()[2:]...)
	if want := slices.Concat(words[80:], words[40:80], words[:40]); !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
}

func TestLargeCallHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	release := s.occupied("k")
	var all []doing
	for i := range 5 {
		c := echoed("k", strconv.Itoa(i))
		if i == 2 {
			c.Size = maxCarried + 1
		}
		all = append(all, do(t, s.Link, c))
	}
	release()
	expectEach(all)
	if got := s.sent.all()[2:]; !slices.EqualFunc(got, [][]string{{"0", "1"}, {"2"}, {"3", "4"}}, slices.Equal) {
		t.Errorf("sent %v", got)
	}
}

func TestCallsOfAPipelineHaveTheirOwnErrors(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.proxy.On(func(args []string) bool { return args[0] == "evalsha" && args[len(args)-1] == "1" }, redistest.ReplyError("OUCH"))
	release := s.occupied("k")
	all := s.doAll(3, "k")
	release()
	all[0].expect("0")
	receive(t, all[1].done)
	if !redis.HasErrorPrefix(all[1].err, "OUCH") || !redis.HasErrorPrefix(all[1].got.Err(), "OUCH") {
		t.Errorf("got %v, %v", all[1].got, all[1].err)
	}
	all[2].expect("2")
}

func TestScriptsThatTheServerHasForgottenAreSentToIt(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		s := newStage(t, patient)
		release := s.occupied("k")
		var all []doing
		for i := range n {
			unknown := script.New("return ARGV[1] -- " + rand.Text())
			all = append(all, do(t, s.Link, &Call{Script: &script.Call{
				Script: unknown, Keys: []string{"k"}, Args: []any{strconv.Itoa(i)},
			}}))
		}
		release()
		expectEach(all)
		if got := s.proxy.Commands(); got["eval"] != n || got["evalsha"] != n+1 {
			t.Errorf("%d EVAL and %d EVALSHA for %d calls", got["eval"], got["evalsha"], n)
		}
	}
}

// Go-redis sends a command again when it gets such an error alone, but in a pipeline only if the first one does.
func TestCallThatIsRefusedForAMomentIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"TRYAGAIN keys are moving", "CLUSTERDOWN Hash slot not served", "READONLY You can't write", "NOREPLICAS Not enough",
		"MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1",
	} {
		s := newStage(t, patient)
		refused := s.proxy.On(func(args []string) bool { return args[0] == "evalsha" && args[len(args)-1] == "1" },
			redistest.ReplyError(message)).Times(1)
		release := s.occupied("k")
		all := s.doAll(4, "k")
		release()
		expectEach(all)
		s.sent.expect(t, s.sent.all()[0], s.sent.all()[1], []string{"0", "1", "2", "3"}, []string{"1"})
		expect.Equal(t, "times that it replied "+message, refused.Count(), 1)
	}
}

func TestCallHasTheValuesOfItsContextAndNotItsEnd(t *testing.T) {
	t.Parallel()
	type key struct{}
	s := newStage(t, patient)
	seen := make(chan context.Context, 1)
	s.client.AddHook(spy(func(ctx context.Context, cmd redis.Cmder) {
		if strings.HasPrefix(cmd.Name(), "eval") {
			seen <- ctx
		}
	}))
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	expect.Must(t, expect.Err(s.Do(ctx, "k", echoed("k", "v"))))
	cancel()
	if got := <-seen; got.Value(key{}) != "value" || got.Done() == ctx.Done() {
		t.Errorf("the context's value is %v", got.Value(key{}))
	}
}

// spy is a hook that sees each single command.
type spy func(context.Context, redis.Cmder)

func (s spy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (s spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The lanes of the others have one credit each, which is taken, and so has the lane of the calls themselves.
func TestWhatGoesApartWaitsForNothingElse(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	release := s.occupied("k")
	held := s.proxy.On(func(args []string) bool { return args[len(args)-1] == "apart" }, redistest.HoldReply)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			replies := s.RunApart(t.Context(), []*script.Call{echoed("k", "apart").Script}, 0)
			expect.Returns(t, "apart", nil)(replies[0].Text())
		})
		redistest.Await(t, "it is sent", func() bool { return held.Count() == i+1 })
	}
	held.Release()
	all.Wait()
	release()
}

func TestWhatGoesApartIsSentWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	held := s.proxy.On(redistest.Command("get"), redistest.Hold) // nor do its probes find out that Redis answers
	for range 5 {
		s.breakers.Breaker(0).Record(context.DeadlineExceeded)
	}
	expect.Equal(t, "it is open", s.breakers.Breaker(0).IsOpen(), true)
	_, err := s.Do(t.Context(), "k", echoed("k", "ordinary"))
	expect.ErrorIs(t, err, breaker.ErrOpen)
	replies := s.RunApart(t.Context(), []*script.Call{echoed("k", "a").Script, echoed("k", "b").Script}, 0)
	for i, want := range []string{"a", "b"} {
		expect.Returns(t, want, nil)(replies[i].Text())
	}
	held.Remove()
	held.Release()
}

func TestAClosedLinkRunsNothingApart(t *testing.T) {
	t.Parallel()
	s := newStage(t, patient)
	s.RunApart(t.Context(), []*script.Call{echoed("k", "a").Script}, 0)
	s.Close()
	for _, key := range []string{"k", "other"} {
		expect.ErrorIs(t, s.RunApart(t.Context(), []*script.Call{echoed(key, "a").Script}, 0)[0].Err(), ErrClosed)
	}
}
