package semaphore

import (
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/permits"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
)

func TestASemaphoreIsKeptWhenTheClockIsSetBackInTheMiddleOfAScript(t *testing.T) {
	t.Parallel()
	m := locktest.StartMiddle(t)
	for _, step := range []struct {
		name  string
		call  func(queue.Calls) script.Call
		first bool // nobody has asked before, so the keys get their first TTLs
	}{
		{"asks first", func(c queue.Calls) script.Call {
			return c.Asking("holder", 1, 2*time.Minute, 0, queue.Unlimited, "", 0)
		}, true},
		{"renews for longer", func(c queue.Calls) script.Call { return c.Renewing("holder", 2*time.Minute, 0) }, false},
		{"gives up with a request on its way", func(c queue.Calls) script.Call { return c.Releasing("holder", 0, true) }, false},
		{"another asks", func(c queue.Calls) script.Call {
			return c.Asking("other", 1, 2*time.Minute, time.Second, queue.Unlimited, "", 0)
		}, false},
		{"loses it", func(c queue.Calls) script.Call { return c.Revoking("id") }, false},
	} {
		for _, before := range []string{"local now, micros =", "local function whole"} { // before it asks for the time, and after that
			for _, mistake := range []string{"", "redis.call('PEXPIRE', key, whole(left))"} {
				m.SetClock(0)
				base := "{" + step.name + ", " + before + mistake + "}"
				held := permits.At(permits.Protocol(), base)
				ask := held.Asking("holder", 1, time.Minute, 0, queue.Unlimited, "", 0)
				if !step.first {
					expect.ErrorIs(t, ask.Run(t.Context(), m.Redis).Err(), nil)
				}
				paused := permits.At(permits.Compile(func(source string) string {
					return locktest.Pausing(strings.Replace(source, "ttls[key] = left\n", "ttls[key] = left "+mistake+"\n", 1), before)
				}), base)
				m.Run(step.call(paused))
				kept := m.Lasting(held.Keys) && m.Redis.HGet(t.Context(), held.Keys[0], "longest").Val() != ""
				if mistake == "" {
					expect.Equal(t, base+" is kept", kept, true)
				} else if step.first {
					expect.Equal(t, "the mistake is found: "+base, kept, false)
				}
			}
		}
	}
}
