package model

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

// SetBack has two callers queue for a lock that is held, and die. Then the clock is set back, and a third one queues. The calls are
// made by Modelled scripts, with the argument as.
func SetBack(t *testing.T, rdb *redis.Client, calls queue.Calls, as any) {
	t.Helper()
	run := func(at int64, call script.Call) *redis.Cmd {
		t.Helper()
		rdb.HSet(context.Background(), calls.Keys[0]+":clock", "s", at/1000, "us", at%1000*1000)
		cmd := call.Run(context.Background(), rdb)
		if err := cmd.Err(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	ask := func(at int64, token string, ttl time.Duration) queue.Asked {
		t.Helper()
		got, err := queue.ParseAsked(run(at, calls.Asking(token, as, ttl, queue.Grace(ttl), queue.Unlimited, "", 0)))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const before, after = 1_700_000_000_000, 1_600_000_000_000 // the clock, in ms
	held := ask(before, "holder", time.Second)
	for _, dead := range []string{"one", "two"} {
		if status := ask(before, dead, time.Second).Status; status != "queued" {
			t.Errorf("%s: %s, want %s", "a dead waiter", status, "queued")
		}
	}
	if status := ask(after, "third", time.Second).Status; status != "queued" {
		t.Errorf("%s: %s, want %s", "the third waiter", status, "queued")
	}
	_ = run(after+600, calls.Renewing("holder", time.Second, held.Fence))
	_ = ask(after+600, "third", time.Second)
	_ = run(after+1001, calls.Releasing("holder", held.Fence, false))
	if status := ask(after+1001, "third", time.Second).Status; status != "held" {
		t.Errorf("%s: %s, want %s", "the third, when the dead have said nothing for a second", status, "held")
	}
	rdb.Del(context.Background(), append(calls.Keys, calls.Keys[0]+":clock")...)
}
