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
	want := slowFor
	for range 8 {
		expect.Equal(t, "over", r.over(now), true)
		r.after(now, ownEnough+1, false)
		expect.Equal(t, "rest", r.left(now), want)
		now, want = now.Add(longestSlow), min(2*want, longestSlow)
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
	want := lostFor
	for range 7 {
		lost()
		expect.Equal(t, "rest", r.left(now), want)
		now, want = now.Add(want), min(2*want, longestLost)
		expect.Equal(t, "over", r.over(now), true)
	}
	now = now.Add(longestLost)
	lost()
	expect.Equal(t, "long after", r.left(now), lostFor)
}
