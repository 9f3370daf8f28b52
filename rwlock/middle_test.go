package rwlock

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/locktest"
)

func TestALockIsKeptWhenTheClockIsSetBackInTheMiddleOfAScript(t *testing.T) {
	t.Parallel()
	at := func(base string, edit func(source string) string) queue.Calls { return rw.At(rw.Compile(edit), base) }
	ask := func(c queue.Calls) script.Call {
		return c.Asking("holder", rw.Writing.Arg(), time.Minute, 0, queue.Unlimited, "", 0)
	}
	locktest.StartMiddle(t).KeepsWhatItHas(at, ask, []locktest.Step{
		{Name: "asks first", Call: func(c queue.Calls) script.Call {
			return c.Asking("holder", rw.Writing.Arg(), 2*time.Minute, 0, queue.Unlimited, "", 0)
		}, First: true},
		{Name: "renews for longer", Call: func(c queue.Calls) script.Call { return c.Renewing("holder", 2*time.Minute, 0) }},
		{Name: "gives up with a request on its way", Call: func(c queue.Calls) script.Call { return c.Releasing("holder", 0, true) }},
		{Name: "another asks for longer", Call: func(c queue.Calls) script.Call {
			return c.Asking("other", rw.Writing.Arg(), 2*time.Minute, time.Second, queue.Unlimited, "", 0)
		}},
		{Name: "becomes a reader for longer", Call: func(c queue.Calls) script.Call { return toReader(c, "holder", 2*time.Minute, 0) }},
	})
}
