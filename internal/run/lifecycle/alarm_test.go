package lifecycle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestAlarmRingsAtTheEarliestOfItsTimesAndLaterOnesLeaveItAsItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var rung []time.Duration
		a := NewAlarm(func() { rung = append(rung, time.Since(began)) })
		for _, after := range []time.Duration{3 * time.Hour, time.Hour, time.Hour, 2 * time.Hour, 5 * time.Hour} {
			a.Set(began.Add(after))
		}
		expect.Equal(t, "set to", a.at, began.Add(time.Hour))
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		expect.Equal(t, "times that it rang", len(rung), 1)
		expect.Equal(t, "rang", rung[0], time.Hour)

		a.Rung()
		a.Set(began.Add(11 * time.Hour))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		expect.Equal(t, "times that it rang", len(rung), 2)

		a.Rung()
		a.Set(time.Now().Add(time.Hour))
		a.Stop()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		expect.Equal(t, "times that it rang once it was stopped", len(rung), 2)
	})
}
