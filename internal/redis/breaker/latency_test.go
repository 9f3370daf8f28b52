package breaker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestBucketsHoldWhatTheirEndsSay(t *testing.T) {
	t.Parallel()
	for d := 32 * time.Microsecond; d < 8*time.Second; d += d/7 + 1 {
		at := bucketOf(d)
		if end := upTo(at); end < d || end > d*5/4+time.Microsecond {
			t.Errorf("%v is in a bucket up to %v", d, end)
		}
		if at > 0 && upTo(at-1) > d {
			t.Errorf("%v is in a bucket from %v", d, upTo(at-1))
		}
	}
}

// timeline is a breaker whose replies a test makes up, in a bubble's time.
type timeline struct {
	*Breaker
	changes atomic.Int64
}

func newTimeline(t *testing.T, cost time.Duration) *timeline {
	t.Helper()
	b := &timeline{}
	life := lifecycle.New()
	b.Breaker = newBreaker(life, func() error { return redis.Nil }, nil, func() {}) // a probe reads a key that is not there
	b.mood.cost, b.onSlow = func() time.Duration { return cost }, func(bool) { b.changes.Add(1) }
	t.Cleanup(func() { life.Close(nil, nil) })
	return b
}

// run has a hundred replies a second.
func (b *timeline) run(d time.Duration, took func(i int) time.Duration) {
	for i := range int(d / (10 * time.Millisecond)) {
		time.Sleep(10 * time.Millisecond)
		b.Took(took(i))
	}
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func TestLatenessFollowsWhatTheLastMinuteTook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		b := newTimeline(t, time.Millisecond)
		expect.Equal(t, "at first", b.LateAfter(timeout), timeout/2)
		b.run(10*time.Second, always(time.Millisecond))
		expect.Equal(t, "of a near Redis", b.LateAfter(timeout), earliestLate)
		b.run(70*time.Second, always(10*time.Millisecond))
		if p := b.LateAfter(timeout); p < 40*time.Millisecond || p > 50*time.Millisecond {
			t.Errorf("late with replies of 10 ms: %v", p)
		}
		b.run(70*time.Second, always(time.Millisecond))
		expect.Equal(t, "a minute after that", b.LateAfter(timeout), earliestLate)
	})
}

// At most one in 200 is late, also where one in a hundred always takes long.
func TestAtMostOneInTwoHundredIsLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, time.Millisecond)
		late, all := 0, 0
		for range 30 {
			b.run(10*time.Second, func(i int) time.Duration {
				took := time.Millisecond
				if i%100 == 50 {
					took = 50 * time.Millisecond
				}
				if all++; took > b.LateAfter(500*time.Millisecond) {
					late++
				}
				return took
			})
		}
		if late*200 > all {
			t.Errorf("%d of %d are late", late, all)
		}
		expect.Equal(t, "changes", b.changes.Load(), 0)
	})
}

// A part that has few replies needs most of a second to be slow, and its p99 is soon one of the slow ones. A stop alone is no reason.
func TestSlowRepliesMakeNoneLateLaterBeforeThePartIsSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const timeout, late = 500 * time.Millisecond, 300 * time.Millisecond
		b := newTimeline(t, 5*time.Millisecond)
		few := func(n int, took time.Duration) {
			for range n {
				time.Sleep(80 * time.Millisecond) // as four parcels of 300 ms
				b.Took(took)
			}
		}
		few(100, time.Millisecond)
		expect.Equal(t, "late at first", b.LateAfter(timeout), earliestLate)
		b.Took(timeout / 2)
		few(2, time.Millisecond)
		expect.Equal(t, "late after one slow reply", b.LateAfter(timeout), timeout/2)
		few(5, late)
		expect.Equal(t, "slow", b.IsSlow(), false)
		expect.Equal(t, "late after some slow replies", b.LateAfter(timeout), leastSlow)
		few(4, time.Millisecond)
		expect.Equal(t, "late when they are quick again", b.LateAfter(timeout), timeout/2)
		few(9, late)
		expect.Equal(t, "slow", b.IsSlow(), true)
		expect.Equal(t, "late where loads come first", b.LateAfter(timeout), timeout/2)
	})
}

func TestTimeoutFollowsTheSlowestReplies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const longest = 500 * time.Millisecond
		b := newTimeline(t, time.Millisecond)
		expect.Equal(t, "at first", b.Timeout(longest), longest)
		b.run(40*time.Second, always(time.Millisecond))
		expect.Equal(t, "of a near Redis", b.Timeout(longest), shortestTimeout)
		b.run(40*time.Second, always(30*time.Millisecond))
		if p := b.Timeout(longest); p < 120*time.Millisecond || p > 150*time.Millisecond {
			t.Errorf("time-out with replies of 30 ms: %v", p)
		}
		b.run(40*time.Second, always(300*time.Millisecond))
		expect.Equal(t, "of a far one", b.Timeout(longest), longest)
	})
}

func TestPartIsSlowAfterASecondAndUntilItIsQuickAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, 5*time.Millisecond)
		b.run(time.Minute, always(time.Millisecond))
		b.run(500*time.Millisecond, always(100*time.Millisecond))
		expect.Equal(t, "slow after half of that", b.IsSlow(), false)
		b.run(time.Second, always(100*time.Millisecond))
		expect.Equal(t, "slow after a second", b.IsSlow(), true)
		b.run(5*time.Second, always(15*time.Millisecond))
		expect.Equal(t, "slow between the edges", b.IsSlow(), true)
		b.run(3*time.Second, always(time.Millisecond))
		expect.Equal(t, "slow afterwards", b.IsSlow(), false)
		expect.Equal(t, "changes", b.changes.Load(), 2)
	})
}

// Whatever replies take now, and wherever in a turn that began.
func TestPartIsSlowWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, ms := range []int{21, 100, 300, 500} {
			late := time.Duration(ms) * time.Millisecond
			for into := range 5 {
				b := newTimeline(t, 5*time.Millisecond)
				b.run(2*time.Second+time.Duration(into)*turn/5, always(time.Millisecond))
				time.Sleep(late) // the last quick reply is from before the change
				b.run(time.Second-late, always(late+100*time.Microsecond))
				expect.Equal(t, fmt.Sprintf("slow with replies that take %v, %d fifths into a turn", late, into), b.IsSlow(), true)
			}
		}
	})
}

func TestStopOfRedisDoesNotMakeAPartSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const stop = 500 * time.Millisecond // no reply is waited for longer
		b := newTimeline(t, time.Millisecond)
		for range 20 {
			b.run(3*time.Second, always(time.Millisecond))
			time.Sleep(stop)
			for i := range 200 {
				b.Took(stop * time.Duration(200-i) / 200)
			}
		}
		b.run(time.Second, always(time.Millisecond))
		expect.Equal(t, "changes", b.changes.Load(), 0)
	})
}

// It has a line of its own, and "redis is slow" would be another of the same cause.
func TestTheTimeoutsOfAnOutageDoNotMakeAPartSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		b := newTimeline(t, 5*time.Millisecond)
		fails := func(n int, every time.Duration) {
			for range n {
				time.Sleep(every)
				b.Took(timeout)
				b.Record(context.DeadlineExceeded)
			}
		}
		for range 5 {
			b.run(time.Minute, always(time.Millisecond))
			fails(maxConsecutive, turn)
			expect.Equal(t, "open", b.IsOpen(), true)
			answered := b.Answered()
			fails(2*fewestSlow, shortestPause/(2*fewestSlow+1)) // that were sent before
			<-answered
			time.Sleep(2 * longestPause)
			expect.Equal(t, "open when a probe was answered", b.IsOpen(), false)
			b.run(turn+turn/2, always(30*time.Millisecond)) // it has much to do
		}
		b.run(time.Minute, always(time.Millisecond))
		expect.Equal(t, "changes", b.changes.Load(), 0)
	})
}

func TestPartIsNotSlowIfLoadsTakeLonger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, 400*time.Millisecond)
		b.run(time.Minute, always(300*time.Millisecond))
		expect.Equal(t, "slow", b.IsSlow(), false)
	})
}

func TestPartAtTheEdgeChangesSeldom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, time.Millisecond)
		b.run(10*time.Minute, func(i int) time.Duration {
			if i/500%2 == 0 {
				return 24 * time.Millisecond
			}
			return 7 * time.Millisecond
		})
		if b.changes.Load() == 0 || b.changes.Load() > 4 {
			t.Errorf("%d changes in ten minutes at the edge", b.changes.Load())
		}
	})
}

func TestAPartThatIsSlowOftenIsQuickAgainWithinTenSecondsEachTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, time.Millisecond)
		for range 6 {
			b.run(3*time.Second, always(100*time.Millisecond))
			expect.Equal(t, "slow", b.IsSlow(), true)
			b.run(10*time.Second, always(time.Millisecond))
			expect.Equal(t, "slow when it has been quick for long", b.IsSlow(), false)
		}
	})
}

// Where probes alone measure, one in twenty is late.
func TestALateReplyNowAndThenKeepsNoPartSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, time.Millisecond)
		for range 3 {
			b.run(4*time.Second, always(50*time.Millisecond))
			b.run(12*time.Second, always(time.Millisecond))
		}
		b.run(4*time.Second, always(50*time.Millisecond))
		expect.Equal(t, "slow", b.IsSlow(), true)
		for i := range 80 {
			time.Sleep(probeEvery)
			took := time.Millisecond
			if i%20 == 10 {
				took = 150 * time.Millisecond
			}
			b.Took(took)
		}
		expect.Equal(t, "slow after 20 seconds", b.IsSlow(), false)
	})
}

// It became slow when replies took longer, and does not stay so while they take less than what they save.
func TestAPartThatIsQuickerThanLoadsIsNotSlowForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, 31*time.Millisecond)
		b.run(5*time.Second, always(80*time.Millisecond))
		expect.Equal(t, "slow", b.IsSlow(), true)
		b.run(10*time.Second, always(17*time.Millisecond))
		expect.Equal(t, "slow with 17 ms", b.IsSlow(), false)
		b = newTimeline(t, time.Millisecond)
		b.run(time.Minute, always(17*time.Millisecond))
		expect.Equal(t, "slow with less than 20 ms", b.IsSlow(), false)
	})
}

func TestProbesEndSlownessThatNobodyElseMeasures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, time.Millisecond)
		b.run(2*time.Second, always(100*time.Millisecond))
		expect.Equal(t, "slow", b.IsSlow(), true)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		expect.Equal(t, "slow when probes are quick", b.IsSlow(), false)
	})
}

func TestAnswerWakesThoseWhoWaitForOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newTimeline(t, time.Millisecond)
		answered := b.Answered()
		select {
		case <-answered:
			t.Error("answered before any reply")
		default:
		}
		b.Took(time.Millisecond)
		<-answered
	})
}
