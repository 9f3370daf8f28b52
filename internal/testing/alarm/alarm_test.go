package alarm_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/alarm"
)

func start(t *testing.T) *alarm.Alarm {
	t.Helper()
	a, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() }) // a test may have closed it
	return a
}

func TestAlarmNeverComesTooEarly(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, d := range []time.Duration{-time.Hour, 0, time.Nanosecond, 100 * time.Microsecond, 3 * time.Millisecond} {
		due := time.Now().Add(d)
		if err := a.Sleep(due); err != nil || time.Now().Before(due) {
			t.Errorf("%v: %v too early, %v", d, time.Until(due), err)
		}
	}
}

func TestClosedAlarmEndsTheSleep(t *testing.T) {
	t.Parallel()
	a := start(t)
	slept := make(chan error)
	go func() { slept <- a.Sleep(time.Now().Add(time.Hour)) }() // owner: the test; stop: Close; joined by receiving
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := <-slept; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if err := a.Sleep(time.Now().Add(time.Hour)); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}
