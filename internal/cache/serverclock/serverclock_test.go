package serverclock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/manual"
)

// server is a server whose clock is ahead of ours.
type server struct {
	ahead time.Duration
	err   error
	asked int
}

func (s *server) clocks() *Clocks {
	return New(Servers{
		Parts:      2,
		PartOf:     func(key string) int { return len(key) % 2 },
		Time:       func(string) (time.Time, error) { s.asked++; return time.Now().Add(s.ahead), s.err },
		Background: func(task func()) bool { task(); return true },
	})
}

func (s *server) check(t *testing.T, c *Clocks, key string, written time.Time, age time.Duration, asked int) {
	t.Helper()
	if got := c.Age(key, written); got != age || s.asked != asked {
		t.Errorf("age %v after %d readings, want %v after %d", got, s.asked, age, asked)
	}
}

func TestTheLocalClockGivesTheAgeUntilThereIsAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{ahead: time.Hour}
		c, now := s.clocks(), time.Now()
		s.check(t, c, "k", now, 0, 1)
		s.check(t, c, "k", now, time.Hour, 1)
		s.check(t, c, "kk", now, 0, 2) // the server of another part
	})
}

func TestAReadingIsUsedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		c, now := s.clocks(), time.Now()
		c.Age("k", now)
		time.Sleep(valid)
		s.check(t, c, "k", now, valid, 1)
		time.Sleep(time.Nanosecond)
		s.check(t, c, "k", now, valid+time.Nanosecond, 2)
	})
}

func TestAnEntryFromTheFutureHasTheClockReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		c := s.clocks()
		c.Age("k", time.Now())
		future := time.Now().Add(time.Hour)
		s.check(t, c, "k", future, -time.Hour, 1) // too soon after the last reading
		time.Sleep(Pause + 1)
		s.ahead = time.Hour
		s.check(t, c, "k", future, -time.Hour+Pause+1, 2)
		s.check(t, c, "k", future, Pause+1, 2)
	})
}

func TestAReadingThatFailedIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: errors.New("down")}
		c, now := s.clocks(), time.Now()
		s.check(t, c, "k", now, 0, 1)
		s.check(t, c, "k", now, 0, 2)
	})
}

func TestAClockThatShowsAnotherTimeThanItShouldIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&server{}).clocks()
		var steps []time.Duration
		c.servers.Stepped = func(_ string, by time.Duration) { steps = append(steps, by) }
		begin := time.Now()
		c.Note("k", begin, begin)
		c.Note("kk", begin.Add(time.Hour), begin) // another server
		time.Sleep(time.Minute)
		c.Note("k", time.Now().Add(slack), time.Now())
		asked := time.Now()
		time.Sleep(time.Minute)
		c.Note("k", time.Now().Add(slack), asked) // the reply took a minute
		if len(steps) > 0 {
			t.Errorf("reported %v", steps)
		}
		time.Sleep(time.Minute)
		c.Note("k", time.Now().Add(time.Hour), time.Now())
		if len(steps) != 1 || steps[0] != time.Hour-slack-time.Minute {
			t.Errorf("reported %v", steps)
		}
	})
}

func TestAManualClockHasNoSteps(t *testing.T) {
	t.Parallel()
	begin := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	m := manual.New(begin)
	c := (&server{}).clocks()
	c.servers.Clock = m.Clock()
	c.servers.Stepped = func(_ string, by time.Duration) { t.Errorf("reported %v", by) }
	c.Note("k", begin, m.Now())
	m.Advance(time.Hour)
	c.Note("k", begin, m.Now()) // the server's clock is about to be moved
	c.Note("k", m.Now(), m.Now())
	expect.Equal(t, "age", c.Age("k", begin), time.Hour)
}
