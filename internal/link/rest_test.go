package link

import (
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// left says for how long r rests from now on, to a millisecond.
func (r *rest) left(now time.Time) time.Duration {
	return max(0, base.Add(time.Duration(r.until.Load())).Sub(now)).Round(time.Millisecond)
}

func TestCallersRestLongerAfterEachSlowReplyInARow(t *testing.T) {
	t.Parallel()
	var r rest
	now := base.Add(time.Hour)
	for _, want := range []time.Duration{6, 12, 24, 48, 96, 192, 192} {
		expect.Equal(t, "over", r.over(now), true)
		r.after(now, ownEnough+1, false)
		expect.Equal(t, "rest", r.left(now), want*time.Millisecond)
		now = now.Add(longestSlow)
	}
	r.after(now, ownEnough, false)
	expect.Equal(t, "after a quick one", r.over(now), true)
	r.after(now, ownEnough+1, false)
	expect.Equal(t, "a slow one again", r.left(now), slowFor)
}

func TestCallersRestForSecondsAfterALostReply(t *testing.T) {
	t.Parallel()
	var r rest
	now := base.Add(time.Hour)
	lost := func() {
		var all sync.WaitGroup
		for range mostHands {
			all.Go(func() { r.after(now, ownTimeout, true) })
		}
		all.Wait()
		r.after(now, ownTimeout-1, false) // the reply of another came just in time
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 16} {
		lost()
		expect.Equal(t, "rest", r.left(now), want*time.Second)
		now = now.Add(want * time.Second)
		expect.Equal(t, "over", r.over(now), true)
	}
	now = now.Add(longestLost)
	lost()
	expect.Equal(t, "long after", r.left(now), lostFor)
}
