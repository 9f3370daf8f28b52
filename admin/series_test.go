package admin

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// However seldom somebody looks, what is over for half a minute is not what is wrong now: it would hide what is new.
func TestWhatHappenedLatelyHasAnAgeAndAnEnd(t *testing.T) {
	t.Parallel()
	var s series
	var now tallied
	start := time.Now()
	at := func(passed time.Duration) time.Time { return start.Add(passed) }
	sees := func(what string, passed time.Duration, want lately, damaged, unstorable float64) {
		t.Helper()
		all, ago := s.lately(&now, at(passed))
		expect.Equal(t, what, all, want)
		expect.Equal(t, what+": damaged", ago["damaged"], damaged)
		expect.Equal(t, what+": unstorable", ago["unstorable"], unstorable)
		expect.Equal(t, what+": no other age", ago["takeovers"], 0)
	}
	sees("nothing", 0, lately{}, 0, 0)
	now.damaged = happened{2, at(time.Second).UnixNano()}
	sees("at once", 2*time.Second, lately{Damaged: 1}, 1, 0)
	s.add(now, at(3*time.Second), 3*time.Second)
	now.unstorable = happened{1, at(20 * time.Second).UnixNano()}
	s.add(now, at(25*time.Second), 22*time.Second)
	sees("both", 25*time.Second, lately{Damaged: 2, Unstorable: 1}, 24, 5)
	sees("one is over", time.Second+recently, lately{Unstorable: 1}, 0, 11)
	sees("the other, too", 20*time.Second+recently, lately{}, 0, 0)
	s.add(now, at(time.Hour), time.Hour)
	now.damaged = happened{9, at(30 * time.Minute).UnixNano()}
	s.add(now, at(2*time.Hour), time.Hour)
	sees("nobody has looked since it was", 2*time.Hour, lately{}, 0, 0)
}
