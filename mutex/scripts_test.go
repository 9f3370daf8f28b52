package mutex

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
)

// Interleavings that the model has found.

func (f *fleet) run(call script.Call) int64 {
	f.Helper()
	n, err := call.Run(f.Context(), f.redis).Int64()
	if err != nil {
		f.Fatal(err)
	}
	return n
}

// A late unlock finds that its successor, which was not notified, has queued in the meantime.
func TestAnHeirThatHasQueuedDoesNotGetTheLockOnceMoreAfterItHasLeft(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	l := f.lock(0, "k")
	next := newCalls(t.Context(), f.key("k"), "")
	waiting := next.asking(time.Minute, longestGrace, queue.Unlimited, "")
	if answer, err := parseAnswer(waiting.Run(t.Context(), f.redis), time.Minute); err != nil || answer.Granted {
		t.Fatalf("%+v, %v", answer, err)
	}
	if fence := f.run(l.held.Claim.(*claim).releasing(successor{id: next.id, ttl: time.Minute, first: true}, false)); fence <= l.Fence() {
		t.Errorf("fence %d after %d", fence, l.Fence())
	}
	expect.Equal(t, "released", f.run(next.releasing(successor{}, false)), queue.Done)
	expect.Equal(t, "token", must2(f.lockers[0].Inspect(t.Context(), "k")).Token, "")
}

func TestAHoldOfAnOwnerDoesNotShortenTheLeaseOfAnother(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	owner := WithOwner(t.Context())
	long, short := newCalls(owner, f.key("k"), ""), newCalls(owner, f.key("k"), "")
	for _, call := range []script.Call{long.asking(time.Hour, 0, 0, ""), short.asking(time.Minute, 0, 0, "")} {
		if answer, err := parseAnswer(call.Run(t.Context(), f.redis), time.Hour); err != nil || !answer.Granted {
			t.Fatalf("%+v, %v", answer, err)
		}
	}
	expect.Equal(t, "renewed", f.run(short.renewal(time.Minute, 0)), queue.Done)
	if left := must2(f.lockers[0].Inspect(t.Context(), "k")).Left; left < 59*time.Minute {
		t.Errorf("the lease ends in %v", left)
	}
}

func FuzzParseGrant(f *testing.F) {
	for _, seed := range []string{"", "1", "0", "-1", "+2", "02", " 2", "2 ", "1795468916003619", "9223372036854775807", "9223372036854775808", "1e9"} {
		f.Add(seed, int64(1))
	}
	f.Fuzz(func(t *testing.T, body string, answered int64) {
		if fence, granted := parseGrant(body, answered); granted && fence <= answered {
			t.Errorf("%q is a grant with fence %d, after an answer with %d", body, fence, answered)
		}
	})
}
