package mutex

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/redistest"
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

// inTheMiddle has a script say its key, and wait until the clock is set back.
const inTheMiddle = `
local from = tonumber(redis.call('TIME')[1])
redis.log(redis.LOG_WARNING, 'in the middle of ' .. KEYS[1])
while tonumber(redis.call('TIME')[1]) >= from do for i = 1, 10000 do end end
`

// Redis 7.0 takes the time at which a script began for that at which keys expire, and another one for what PEXPIRE adds to.
func TestALockIsKeptWhenTheClockIsSetBackInTheMiddleOfAScript(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	server := redistest.Start(t, "--logfile", log)
	set := func(ahead time.Duration) {
		if err := server.SetClock(ahead); errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	rdb := server.Client(t)
	if still, err := rdb.Eval(t.Context(), `local t = redis.call('TIME')
		for i = 1, 1000000 do end
		return redis.call('TIME')[2] == t[2] and 1 or 0`, []string{"k"}).Bool(); err != nil || still {
		t.Skip("time stands still within a script, as on Redis 7.2 and later:", err)
	}
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
		{"asks", "lock", nil},
	} {
		for _, before := range []string{"local time =", "local function whole"} { // before it asks for the time, and after that
			set(0)
			key := "{" + step.name + ", " + before + "}"
			holder, other := &calls{keys: keysOf(key), id: "holder", token: "holder"}, &calls{keys: keysOf(key), id: "other", token: "other"}
			call, fence := holder.asking(time.Minute, 0, 0, ""), int64(0)
			if step.call != nil {
				var err error
				if fence, err = call.Run(t.Context(), rdb).Int64(); err != nil {
					t.Fatal(err)
				}
				call = step.call(holder, other, fence)
			}
			call.Script = script.New(strings.Replace(text("fields", "prelude", step.file), before, inTheMiddle+before, 1))
			done := make(chan error, 1)
			go func() { done <- call.Run(context.Background(), rdb).Err() }() // owner: the test; ends with the call; joined by receiving
			redistest.Await(t, "the script is in the middle", func() bool {
				logged, err := os.ReadFile(log)
				return err == nil && strings.Contains(string(logged), "in the middle of "+key) || len(done) > 0
			})
			set(-time.Hour)
			expect.ErrorIs(t, <-done, nil)
			fields := rdb.HGetAll(t.Context(), key).Val()
			if !strings.HasPrefix(fields["token"], "holder") || fields["fence"] < fmt.Sprint(fence) {
				t.Errorf("%s: the lock is forgotten: %v", key, fields)
			}
			expect.Equal(t, key+" has a TTL", rdb.PTTL(t.Context(), key).Val() > 0, true)
		}
	}
}
