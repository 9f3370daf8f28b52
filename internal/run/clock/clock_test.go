package clock_test

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/manual"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestTheZeroClockIsTheMachines(t *testing.T) {
	t.Parallel()
	var c clock.Clock
	before := time.Now()
	now := c.Now()
	after := time.Now()
	expect.Equal(t, "between", now.Before(before) || now.After(after), false)
	expect.Equal(t, "manual", c.Manual(), false)
	over, stop := c.After(0)
	defer stop()
	<-over
}

func TestAManualClockStandsStillUntilItIsMoved(t *testing.T) {
	t.Parallel()
	m := manual.New(start)
	c := m.Clock()
	expect.Equal(t, "now", c.Now(), start)
	m.Advance(time.Hour)
	expect.Equal(t, "now", c.Now(), start.Add(time.Hour))
	expect.Equal(t, "since", c.Since(start), time.Hour)
	expect.Equal(t, "manual", c.Manual(), true)
}

func TestAdvanceLetsThoseGoWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	m := manual.New(start)
	soon, stopSoon := m.Clock().After(time.Minute)
	late, stopLate := m.Clock().After(time.Hour)
	defer stopSoon()
	m.Advance(time.Minute)
	expect.Equal(t, "when", <-soon, start.Add(time.Minute))
	select {
	case <-late:
		t.Error("an hour was over after a minute")
	default:
	}
	expect.Equal(t, "waiting", m.Waiting(), 1)
	stopLate()
	expect.Equal(t, "waiting", m.Waiting(), 0)
	m.Advance(time.Hour)
	select {
	case <-late:
		t.Error("an alarm that was stopped went off")
	default:
	}
	at, _ := m.Clock().After(0)
	expect.Equal(t, "at once", <-at, m.Now())
}
