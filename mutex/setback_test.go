package mutex

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/model"
)

// The dead have queued before the clock was set back, so they seem to live for as much longer.
func TestDeadWaitersHoldUpNobodyForLongerThanTheTTLOfOneWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	rdb, key := shared.Client(t), "{model-"+rand.Text()+"}"
	lock := script.New(model.Modelled(text("fields", "lock_free") + whole("lock")))
	unlock := script.New(model.Modelled(text("fields", "unlock_lone") + whole("unlock")))
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

func TestALockIsKeptWhenTheClockIsSetBackInTheMiddleOfAScript(t *testing.T) {
	t.Parallel()
	m := locktest.StartMiddle(t)
	for _, step := range []struct {
		name, file string
		call       func(holder, other *calls, fence int64) script.Call
	}{
		{"asks again", "lock", func(c, _ *calls, _ int64) script.Call { return c.asking(time.Minute, 0, 0, "") }},
		{"another asks", "lock", func(_, c *calls, _ int64) script.Call {
			return c.asking(time.Minute, time.Second, queue.Unlimited, "")
		}},
		{"renews", "renew", func(c, _ *calls, fence int64) script.Call { return c.renewal(time.Minute, fence) }},
		{"renews and raises", "renew", func(c, _ *calls, fence int64) script.Call { return c.renewal(time.Minute, fence+1) }},
		{"parks", "park", func(c, _ *calls, _ int64) script.Call { return c.parking(time.Minute, false) }},
		{"parks with a request on its way", "park", func(c, _ *calls, _ int64) script.Call { return c.parking(time.Minute, true) }},
		{"hands over with a request on its way", "unlock", func(c, _ *calls, _ int64) script.Call {
			return c.releasing(successor{id: "holder's next", ttl: time.Hour}, true)
		}},
		{"asks", "lock", nil},
	} {
		for _, before := range []string{"local time =", "local function whole"} { // before it asks for the time, and after that
			m.SetClock(0)
			key := "{" + step.name + ", " + before + "}"
			holder, other := &calls{keys: keysOf(key), id: "holder", token: "holder"}, &calls{keys: keysOf(key), id: "other", token: "other"}
			call, fence := holder.asking(time.Minute, 0, 0, ""), int64(0)
			if step.call != nil {
				var err error
				if fence, err = call.Run(t.Context(), m.Redis).Int64(); err != nil {
					t.Fatal(err)
				}
				m.Redis.HSet(t.Context(), key, "kept", 0) // so that it is to be kept for longer
				call = step.call(holder, other, fence)
			}
			call.Script = script.New(locktest.Pausing(text("fields")+whole(step.file), before))
			m.Run(call)
			fields := m.Redis.HGetAll(t.Context(), key).Val()
			if !strings.HasPrefix(fields["token"], "holder") || fields["fence"] < fmt.Sprint(fence) {
				t.Errorf("%s: the lock is forgotten: %v", key, fields)
			}
			expect.Equal(t, key+" has a TTL", m.Lasting(call.Keys), true)
		}
	}
}
