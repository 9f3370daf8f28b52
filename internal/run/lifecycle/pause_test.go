package lifecycle_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestUntilPausesForLongerEachTimeAndTriesOnceMoreAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		life := lifecycle.New()
		var pauses []time.Duration
		done, last := make(chan struct{}), time.Now()
		go func() {
			defer close(done)
			life.Until(time.Second, 4*time.Second, func() bool {
				pauses = append(pauses, time.Since(last))
				last = time.Now()
				return false
			})
		}()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		before := len(pauses)
		life.End(errors.New("over"))
		<-done
		expect.Equal(t, "attempts at the end", len(pauses), before+1)
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
			if got := pauses[i]; got < want/2 || got >= want*3/2 {
				t.Errorf("pause %d was %v, want about %v", i, got, want)
			}
		}
		expect.Equal(t, "some pauses differ", pauses[2] != pauses[3], true)
	})
}

func TestUntilEndsWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := []bool{false, false, true, true}
		lifecycle.New().Until(time.Second, time.Second, func() bool {
			done := left[0]
			left = left[1:]
			return done
		})
		expect.Equal(t, "it was called", slices.Equal(left, []bool{true}), true)
	})
}
