package send

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
)

// slow is a hook that answers each command itself, with absence, when wait returns.
type slow struct {
	wait func(ctx context.Context)
}

func (s slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slow) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.wait(ctx)
		if several, ok := cmd.(*redis.StringSliceCmd); ok {
			several.SetVal(make([]string, len(cmd.Args())-1))
			return nil
		}
		cmd.SetErr(redis.Nil)
		return redis.Nil
	}
}

func (s slow) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.wait(ctx)
		for _, cmd := range cmds {
			cmd.SetErr(redis.Nil)
		}
		return redis.Nil
	}
}

// slowly runs a test on virtual time, with a link that has a second for each request.
func slowly(t *testing.T, wait func(context.Context), test func(*testing.T, *Link)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // never dialled
		defer func() { _ = rdb.Close() }()
		rdb.AddHook(slow{wait})
		l := New(rdb, time.Second, breaker.New(rdb, t.Name(), time.Second, nil))
		l.reads[0].spare = 0
		defer l.Close()
		test(t, l)
	})
}

// crowd asks for that many keys. It returns how many got no answer, and how long it took until none waited.
func crowd(t *testing.T, l *Link, n int) (unanswered int, took time.Duration) {
	t.Helper()
	start := time.Now()
	all := make([]*Read, n)
	for i, key := range keysOf(t, l, n) {
		all[i], _ = l.Ask(t.Context(), key) // it is not closed
	}
	for _, read := range all {
		expect.Must(t, read.Wait(t.Context()))
		if read.Err != nil {
			unanswered++
		}
	}
	return unanswered, time.Since(start)
}

// The first parcels time out after a second, and open the breaker. Requests that were sent in between have their second too.
func TestNoReadTakesLongerThanTwoTimeoutsWhenRedisHangsHoweverManyThereAre(t *testing.T) {
	slowly(t, func(ctx context.Context) { <-ctx.Done() }, func(t *testing.T, l *Link) {
		const n = 100 * maxReads
		unanswered, took := crowd(t, l, n)
		expect.Equal(t, "reads without an answer", unanswered, n)
		if took > 2*time.Second+time.Second/slowShare {
			t.Errorf("waited %v for reads that may take a second", took)
		}
	})
}

func TestReadsWaitForTheirTurnAsLongAsRedisAnswers(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(90 * time.Millisecond) }, func(t *testing.T, l *Link) {
		l.pin(shortest)
		unanswered, took := crowd(t, l, 20*maxReads)
		if unanswered > 0 || took < time.Second {
			t.Errorf("%d got no answer; all had theirs after %v", unanswered, took)
		}
	})
}

// A request of many calls and the one before it take longer than RedisTimeout together; neither does alone.
func TestCallsWaitForTheirTurnAsLongAsRedisAnswers(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(600 * time.Millisecond) }, func(t *testing.T, l *Link) {
		l.pin(shortest)
		start := time.Now()
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				expect.ErrorIs(t, expect.Err(l.Do(t.Context(), "k", echoed("k", "v"))), redis.Nil)
			})
		}
		all.Wait()
		if took := time.Since(start); took < time.Second {
			t.Errorf("all had theirs after %v", took)
		}
	})
}

func TestTimeoutRunsFromTheSending(t *testing.T) {
	var sent atomic.Int64
	slowly(t, func(ctx context.Context) {
		if sent.Add(1) > 1 {
			<-ctx.Done()
			return
		}
		time.Sleep(200 * time.Millisecond)
	}, func(t *testing.T, l *Link) {
		l.pin(shortest)
		start := time.Now()
		first, _ := l.Ask(t.Context(), "k")
		synctest.Wait() // it is in flight
		second, _ := l.Ask(t.Context(), "k")
		if err := second.Wait(t.Context()); err != nil || first.Err != nil || !errors.Is(second.Err, ErrTimeout) {
			t.Errorf("%v, %v, %v", err, first.Err, second.Err)
		}
		expect.Equal(t, "the time-out", time.Since(start), 1200*time.Millisecond)
	})
}

func TestParcelThatTakesAQuarterOfItsTimeGivesItsCreditBack(t *testing.T) {
	var sent atomic.Int64
	slowly(t, func(ctx context.Context) {
		if sent.Add(1) == 1 {
			<-ctx.Done()
		}
	}, func(t *testing.T, l *Link) {
		l.pin(shortest)
		start := time.Now()
		hangs, _ := l.Ask(t.Context(), "k")
		synctest.Wait() // it is in flight
		if read, err := l.Get(t.Context(), "k"); err != nil || read.Err != nil {
			t.Errorf("read %+v, %v", read, err)
		}
		expect.Equal(t, "when the next was sent", time.Since(start), time.Second/slowShare)
		for range 10 {
			expect.ErrorIs(t, expect.Err(l.Get(t.Context(), "k")))
		}
		expect.Equal(t, "when those after that were done", time.Since(start), time.Second/slowShare)
		if err := hangs.Wait(t.Context()); err != nil || !errors.Is(hangs.Err, ErrTimeout) {
			t.Errorf("%v, %v", err, hangs.Err)
		}
		expect.Equal(t, "the time-out of the one that hangs", time.Since(start), time.Second)
	})
}

func TestParcelsInFlightAreBoundedAlsoThoseThatHang(t *testing.T) {
	var sent atomic.Int64
	slowly(t, func(ctx context.Context) { sent.Add(1); <-ctx.Done() }, func(t *testing.T, l *Link) {
		l.pin(time.Second) // most credits
		for _, key := range keysOf(t, l, 100*maxReads) {
			_, _ = l.Ask(t.Context(), key) // nobody looks at the answer
		}
		time.Sleep(time.Second - 1)
		expect.Equal(t, "parcels in flight", sent.Load(), mostCredits)
	})
}

// Else a lane would have as many connections as it may, and others wait for one, since none of its parcels gives its credit back in time.
func TestWhereAllRepliesAreSlowALaneTakesFewConnections(t *testing.T) {
	var flying, most atomic.Int64
	slowly(t, func(context.Context) {
		most.Store(max(most.Load(), flying.Add(1)))
		time.Sleep(2 * time.Second / slowShare)
		flying.Add(-1)
	}, func(t *testing.T, l *Link) {
		var all []*Read
		for i, key := range keysOf(t, l, 3000) {
			if i == 1000 {
				most.Store(0) // by now it is known
			}
			read, _ := l.Ask(t.Context(), key) // it is not closed
			all = append(all, read)
			time.Sleep(time.Millisecond)
		}
		expect.Equal(t, "at once", most.Load(), int64(firstCredits))
		for _, read := range all {
			if err := read.Wait(t.Context()); err != nil || read.Err != nil {
				t.Fatal(err, read.Err)
			}
		}
	})
}

func TestCloseDoesNotWaitForAnIdleWorker(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(time.Millisecond) }, func(t *testing.T, l *Link) {
		start := time.Now()
		expect.Must(t, expect.Err(l.Ask(t.Context(), "k")))
		synctest.Wait() // it is in flight
		l.Close()
		if took := time.Since(start); took > time.Millisecond {
			t.Errorf("took %v, want that of what is in flight", took)
		}
	})
}

func TestIdleWorkersEnd(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(time.Millisecond) }, func(t *testing.T, l *Link) {
		for range 3 {
			expect.Must(t, expect.Err(l.Get(t.Context(), "k")))
			l.reads[0].mu.Lock()
			n := l.reads[0].idle
			l.reads[0].mu.Unlock()
			time.Sleep(linger + time.Millisecond)
			l.reads[0].mu.Lock()
			if left := l.reads[0].idle; n > 1 || left != 0 {
				t.Errorf("%d workers, and %d of them stayed", n, left)
			}
			l.reads[0].mu.Unlock()
		}
	})
}
