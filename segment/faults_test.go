package segment

import (
	"context"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestErrorsHaveAPartOfALongName(t *testing.T) {
	t.Parallel()
	near, p := newProxied(t, newCounter(t, shared.Client(t), Config{Segments: 3}))
	p.On(func([]string) bool { return true }, redistest.ReplyError("ERR no"))
	long := strings.Repeat("n", 60_000)
	for what, call := range map[string]func() error{
		"Create":    func() error { return near.Create(t.Context(), long, 9) },
		"Take":      func() error { return near.Take(t.Context(), long, 2) },
		"Add":       func() error { return near.Add(t.Context(), long, 4) },
		"Total":     func() error { _, err := near.Total(t.Context(), long); return err },
		"Rebalance": func() error { return near.Rebalance(t.Context(), long) },
	} {
		if err := call(); err == nil || len(err.Error()) > 1000 {
			t.Errorf("the error of %s: %.300v", what, err)
		}
	}
}

func TestALostReplyNeitherTakesTwiceNorLosesAnything(t *testing.T) {
	t.Parallel()
	for _, fault := range []redistest.Fault{redistest.DropReply, redistest.SwallowReply, redistest.CutBefore} {
		for step, match := range scripts {
			t.Run(string(fault)+" of "+step, func(t *testing.T) {
				t.Parallel()
				c := newCounter(t, shared.Client(t), Config{Segments: 3})
				near, p := newProxied(t, c)
				rule := p.On(match, fault).Times(2)
				ok(t, near.Create(t.Context(), name, 9))
				ok(t, near.Take(t.Context(), name, 2))
				ok(t, near.Take(t.Context(), name, 5)) // moves units
				ok(t, near.Add(t.Context(), name, 4))
				wantTotal(t, c, 6)
				if step != "undo" && rule.Count() == 0 {
					t.Error("nothing was lost")
				}
			})
		}
	}
}

func TestWhatWasTakenForACallerThatLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, fault := range []redistest.Fault{redistest.HoldReply, redistest.Hold} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			c := newStock(t, shared.Client(t), 1, 10)
			near, p := newProxied(t, c)
			held := p.On(scripts["take"], fault)
			ctx, cancel := context.WithCancel(t.Context())
			taken := takeAsync(ctx, near, 3)
			<-held.Hit()
			cancel()
			expect.ErrorIs(t, <-taken, context.Canceled)
			redistest.Await(t, "it is undone", func() bool { return p.Commands()["evalsha"] >= 2 && near.idle() == 1 })
			wantTotal(t, c, 10)
			held.Remove() // the copies arrive now, late
			ok(t, near.Close())
			wantTotal(t, c, 10)
		})
	}
}

// idle is how many lanes have no take under way.
func (c *Counter) idle() int {
	c.lanes.mu.Lock()
	defer c.lanes.mu.Unlock()
	return len(c.lanes.free)
}

func TestACopyOfATakeThatArrivesAfterTheLanesNextTakesNothing(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	c := newStock(t, rdb, 1, 10)
	first := taking{key: c.key(name, 0), lane: "lane", number: 9}
	next := first
	next.number = 10
	for _, step := range []struct {
		taking
		want int64
	}{{first, 2}, {first, 2}, {next, 2}, {first, replyStale}, {next, 2}} {
		if got, err := c.ask(t.Context(), step.take(2, 2)); got != step.want || err != nil {
			t.Errorf("request %d took %d, %v; want %d", step.number, got, err, step.want)
		}
	}
	_, err := c.ask(t.Context(), first.undo()) // late, too
	ok(t, err)
	wantTotal(t, c, 6)
}

func TestCloseTriesOnceMoreToGiveBack(t *testing.T) {
	t.Parallel()
	c := newStock(t, shared.Client(t), 1, 10)
	cfg := c.cfg
	cfg.RedisTimeout = redistest.Brisk
	p := redistest.StartProxy(t, shared.Addr())
	near := newCounter(t, p.Client(t, redistest.AsksAgain), cfg)
	p.On(scripts["take"], redistest.SwallowReply)
	refused := p.On(scripts["undo"], redistest.ReplyError("LOADING not yet"))
	if near.Take(t.Context(), name, 3) == nil { // RedisTimeout passes, or on a busy machine the proxy gives the connection up before
		t.Error("it took what Redis did not say")
	}
	<-refused.Hit()
	wantTotal(t, c, 7)
	refused.Remove()
	ok(t, near.Close())
	wantTotal(t, c, 10)
}

func TestARedisThatDoesNotAnswerIsGivenUpAfterRedisTimeout(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	c := newCounter(t, p.Client(t), Config{RedisTimeout: redistest.Brisk})
	p.BlackHole(true)
	expect.ErrorIs(t, c.Create(t.Context(), name, 1), ErrUncertain, context.DeadlineExceeded)
	expect.ErrorIs(t, c.Take(t.Context(), name, 1), context.DeadlineExceeded)
	expect.ErrorIs(t, c.Add(t.Context(), name, 1), ErrUncertain, context.DeadlineExceeded)
	p.BlackHole(false)
	p.Cut()
}

func TestACreateWhoseCallerLeftIsUncertain(t *testing.T) {
	t.Parallel()
	c := newCounter(t, shared.Client(t), Config{})
	near, p := newProxied(t, c)
	held := p.On(scripts["create"], redistest.HoldReply)
	ctx, cancel := context.WithCancel(t.Context())
	created := make(chan error, 1)
	go func() { created <- near.Create(ctx, name, 5) }() // owner: the test; ends with Create; joined by receiving
	<-held.Hit()
	cancel()
	expect.ErrorIs(t, <-created, ErrUncertain, context.Canceled)
	held.Remove()
	wantTotal(t, c, 5) // nobody has spread them, and they can be taken
	ok(t, c.Take(t.Context(), name, 5))
}
