package mutex

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/model"
)

// The dead have queued before the clock was set back, so they seem to live for as much longer.
func TestDeadWaitersHoldUpNobodyForLongerThanTheTTLOfOneWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	rdb, key := shared.Client(t), "{model-"+rand.Text()+"}"
	lock := script.New(model.Modelled(text("fields", "lock_free", "prelude", "lock")))
	unlock := script.New(model.Modelled(text("fields", "unlock_lone", "prelude", "unlock")))
	run := func(at int64, id string, call func(*calls) script.Call, with *script.Script) script.Call {
		t.Helper()
		rdb.HSet(context.Background(), key+":clock", "s", at/1000, "us", at%1000*1000)
		c := call(&calls{keys: keysOf(key), id: id, token: id})
		c.Script = with
		return c
	}
	ask := func(at int64, id string) queue.Answer {
		t.Helper()
		call := run(at, id, func(c *calls) script.Call { return c.asking(time.Second, time.Second, queue.Unlimited, "") }, lock)
		answer, err := parseAnswer(call.Run(context.Background(), rdb), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	const before, after = 1_700_000_000_000, 1_600_000_000_000 // the clock, in ms
	for _, id := range []string{"holder", "one", "two", "three"} {
		expect.Equal(t, id, ask(before, id).Granted, id == "holder")
	}
	expect.Equal(t, "the last one", ask(after, "last").Granted, false)
	call := run(after+100, "holder", func(c *calls) script.Call { return c.releasing(successor{}, false) }, unlock)
	if err := call.Run(context.Background(), rdb).Err(); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "while the first of the dead has it", ask(after+700, "last").Granted, false)
	expect.Equal(t, "when that is over", ask(after+1101, "last").Granted, true)
	rdb.Del(context.Background(), append(keysOf(key), key+":clock")...)
}
