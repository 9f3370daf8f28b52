package limit

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/run/slots"
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
		if n, most := looks.Load(), 2*int64(time.Minute/pauseOfAll); n > most+most/2 || n == 0 {
			t.Errorf("they waited %d times in a minute", n)
		}
		stop()
	})
}

// looking counts how often its owner begins to wait: until it may wake one, and until it is woken.
type looking struct {
	context.Context

	times *atomic.Int64
}

func (l looking) Done() <-chan struct{} {
	l.times.Add(1)
	return l.Context.Done()
}

// Five loads with five deadlines wait, each with a twin that gives up, and one with a later deadline whose Cache has no slot.
func TestASpareSlotGoesToWhoeverCanUseItForLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, full, began := New(Config{MaxLoads: 1}), slots.New(1), time.Now()
		full.TryAcquire()
		held, granted := l.Try(t.Context(), Need{}), make(chan int, 10)
		wait := func(ctx context.Context, i int, kind *slots.Slots) {
			if s, ok := l.Take(ctx, Need{Spare: true, Until: began.Add(time.Duration(i) * time.Hour), Kind: kind}); ok {
				granted <- i
				time.Sleep(time.Second)
				l.Free(s)
			}
		}
		leaves, leave := context.WithCancel(t.Context())
		for _, i := range []int{1, 4, 2, 5, 3} {
			go wait(t.Context(), i, nil)
			go wait(leaves, i, nil)
		}
		blocked, stop := context.WithCancel(t.Context())
		go wait(blocked, 9, full)
		time.Sleep(10 * longestPause) // by now they look seldom
		leave()
		l.Free(held)
		for want := 5; want > 0; want-- {
			expect.Equal(t, "who has it", <-granted, want)
		}
		stop()
		time.Sleep(2 * time.Second) // the last one frees its slot
	})
}
