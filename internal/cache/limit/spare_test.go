package limit

import (
	"context"
	"sync/atomic"
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

func TestAThousandWhoWaitForASpareSlotLookForItAsOftenAsFifty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := New(Config{MaxLoads: 1})
		l.Try(ctx, Need{})
		var looks atomic.Int64
		for range 1000 {
			go l.Take(looking{ctx, &looks}, Need{Spare: true})
		}
		time.Sleep(time.Minute)
		looks.Store(0)
		time.Sleep(time.Minute)
		if n, most := looks.Load(), int64(time.Minute/pauseOfAll); n > most+most/2 || n == 0 {
			t.Errorf("they looked %d times in a minute", n)
		}
		stop()
	})
}

// looking counts how often its owner begins to wait.
type looking struct {
	context.Context

	times *atomic.Int64
}

func (l looking) Done() <-chan struct{} {
	l.times.Add(1)
	return l.Context.Done()
}
