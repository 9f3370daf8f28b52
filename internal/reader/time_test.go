package reader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/health"
)

// slow is a hook that answers each command itself, with absence, when wait returns.
type slow struct {
	wait func(ctx context.Context)
}

func (s slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slow) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.wait(ctx)
		if several, ok := cmd.(*redis.SliceCmd); ok {
			several.SetVal(make([]any, len(cmd.Args())-1))
			return nil
		}
		cmd.SetErr(redis.Nil)
		return redis.Nil
	}
}

func (s slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// slowly runs a test on virtual time, with a reader that has a second for each read.
func slowly(t *testing.T, wait func(context.Context), test func(*testing.T, *Reader)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // never dialled
		defer func() { _ = rdb.Close() }()
		rdb.AddHook(slow{wait})
		r := New(rdb, time.Second, health.New(rdb, nil))
		defer r.Close()
		test(t, r)
	})
}

// crowd asks for more keys than a batch has, in one lane, and returns how many got no answer, and when all had what they got.
func crowd(t *testing.T, r *Reader, n int) (unanswered int, took time.Duration) {
	t.Helper()
	start := time.Now()
	all := make([]*Read, n)
	for i, key := range keys(t, r, n) {
		all[i], _ = r.Ask(t.Context(), key) // it is not closed
	}
	for _, read := range all {
		if err := read.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if errors.Is(read.Err, ErrTimeout) {
			unanswered++
		}
	}
	return unanswered, time.Since(start)
}

func TestNoReadTakesLongerThanItsTimeoutWhenRedisHangsHoweverManyThereAre(t *testing.T) {
	slowly(t, func(ctx context.Context) { <-ctx.Done() }, func(t *testing.T, r *Reader) {
		const n = 10 * maxBatch
		unanswered, took := crowd(t, r, n)
		if unanswered != n {
			t.Errorf("%d reads got no answer, want all", unanswered)
		}
		if took > time.Second {
			t.Errorf("waited %v for reads that may take a second", took)
		}
	})
}

func TestReadsWaitForTheirTurnAsLongAsRedisAnswers(t *testing.T) {
	slowly(t, func(ctx context.Context) {
		select {
		case <-time.After(90 * time.Millisecond):
		case <-ctx.Done():
		}
	}, func(t *testing.T, r *Reader) {
		unanswered, took := crowd(t, r, 20*maxBatch)
		if unanswered > 0 || took < time.Second {
			t.Errorf("%d got no answer; all had theirs after %v", unanswered, took)
		}
	})
}

// Redis answers a few batches, and then hangs.
func TestReadsThatWaitForTheirTurnHaveTheirTimeoutFromTheLastAnswer(t *testing.T) {
	var batches atomic.Int64
	slowly(t, func(ctx context.Context) {
		if batches.Add(1) > 3 {
			<-ctx.Done()
			return
		}
		time.Sleep(90 * time.Millisecond)
	}, func(t *testing.T, r *Reader) {
		unanswered, took := crowd(t, r, 20*maxBatch) // the first batch may be sent before it is full
		if unanswered < 17*maxBatch || unanswered == 20*maxBatch || took > 3*90*time.Millisecond+time.Second {
			t.Errorf("%d got no answer; all had theirs after %v", unanswered, took)
		}
	})
}

func TestCloseDoesNotWaitForAnIdleWorker(t *testing.T) {
	slowly(t, func(context.Context) { time.Sleep(time.Millisecond) }, func(t *testing.T, r *Reader) {
		start := time.Now()
		if _, err := r.Ask(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it is in flight
		r.Close()
		if took := time.Since(start); took > time.Millisecond {
			t.Errorf("took %v, want that of what is in flight", took)
		}
	})
}
