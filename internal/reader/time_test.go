package reader

import (
	"context"
	"errors"
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

// crowd asks for more keys than a batch has, in one lane, and returns how many got no answer.
func crowd(t *testing.T, r *Reader, n int) (unanswered int) {
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
	if took := time.Since(start); took > time.Second {
		t.Errorf("waited %v for a read that may take a second", took)
	}
	return unanswered
}

func TestNoReadTakesLongerThanItsTimeoutHoweverManyThereAre(t *testing.T) {
	slowly(t, func(ctx context.Context) { <-ctx.Done() }, func(t *testing.T, r *Reader) {
		const n = 10 * maxBatch
		if got := crowd(t, r, n); got != n {
			t.Errorf("%d reads got no answer, want all", got)
		}
	})
}

func TestReadsWhoseTurnCameTooLateDoNotSayThatRedisIsDown(t *testing.T) {
	slowly(t, func(ctx context.Context) {
		select {
		case <-time.After(90 * time.Millisecond):
		case <-ctx.Done():
		}
	}, func(t *testing.T, r *Reader) {
		for range 10 {
			if got := crowd(t, r, 20*maxBatch); got == 0 {
				t.Fatal("all were answered in time")
			}
		}
		if _, err := r.health.Breaker(0).Allow(); err != nil {
			t.Error(err)
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
