package limit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// In a bubble time stands still while anybody can run, so a wait that took none was ended by the load.
func TestSpareSlotIsTakenWhenALoadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{MaxLoads: 1})
		other := l.Try(t.Context(), Need{})
		taken := make(chan Slot)
		go func() {
			s, _ := l.Take(t.Context(), Need{Spare: true})
			taken <- s
		}()
		time.Sleep(10 * longestPause) // by now it looks seldom
		ended := time.Now()
		l.Free(other)
		expect.Equal(t, "none", (<-taken).IsNone(), false)
		expect.Equal(t, "waited", time.Since(ended), 0)
	})
}
