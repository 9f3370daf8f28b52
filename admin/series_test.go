package admin

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// However seldom somebody looks, what happened long ago did not happen lately: it would hide what is new.
func TestWhatHappenedLatelyHasAnAgeAndAnEnd(t *testing.T) {
	t.Parallel()
	var s series
	var now tallied
	s.before = now
	start := time.Now()
	at := func(passed time.Duration) time.Time { return start.Add(passed) }
	now.damaged = 2
	s.add(now, at(time.Minute), time.Minute)
	now.unstorable = 1
	s.add(now, at(2*time.Minute), time.Minute)
	all, ago := s.lately(at(2 * time.Minute))
	expect.Equal(t, "both", all, lately{Damaged: 2, Unstorable: 1})
	expect.Equal(t, "since the look before", ago["damaged"], 120)
	expect.Equal(t, "the later one", ago["unstorable"], 60)
	for i := 3; i <= 6; i++ {
		s.add(now, at(time.Duration(i)*time.Minute), time.Minute)
	}
	all, ago = s.lately(at(6 * time.Minute))
	expect.Equal(t, "what is old is over", all, lately{Unstorable: 1})
	expect.Equal(t, "with an age", len(ago), 1)
	all, _ = s.lately(at(7 * time.Minute))
	expect.Equal(t, "and then the other", all, lately{})
}
