package tier

import (
	"testing"
	"time"
)

// A Get that begins after Forget returned finds nothing of before, not even for the moment in which a Keep finds out that
// it came too late.
func TestWhatWasForgottenIsNotServedForAMoment(t *testing.T) {
	t.Parallel()
	tier, _ := newTier(t, entries(10))
	for range 20_000 {
		mark := tier.Mark("k")
		tier.Forget("k")
		kept := make(chan struct{})
		go func() { // owner: the test; ends with Keep; joined by receiving
			defer close(kept)
			tier.Keep("k", mark, "old", 3, time.Hour, time.Hour)
		}()
		for waiting := true; waiting; {
			select {
			case <-kept:
				waiting = false
			default:
			}
			if tier.Get("k") != nil {
				t.Fatal("served what was forgotten")
			}
		}
	}
}
