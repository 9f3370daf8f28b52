package tier

import (
	"strconv"
	"testing"
	"time"
)

// A Get that begins after Forget returned finds nothing of before, not even for the moment in which a Keep finds out that
// it came too late.
func TestWhatWasForgottenIsNotServedForAMoment(t *testing.T) {
	t.Parallel()
	tier, _ := newTier(t, entries(10))
	for range 5_000 {
		mark := tier.Mark("k")
		tier.Forget("k")
		kept := make(chan struct{})
		go func() { // owner: the test; ends with Keep; joined by receiving
			defer close(kept)
			tier.Keep("k", mark, new(Item), "old", 3, time.Hour, time.Hour)
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

// All that was kept is void before notices arrive again, and a Get may be anywhere at that moment.
func TestWhatIsVoidIsNotServedByAGetThatSeesNoticesArriveAgain(t *testing.T) {
	t.Parallel()
	tier, _ := newTier(t, entries(10))
	tier.set("k", "old")
	tier.live = func() bool { // they arrive again just before it is asked
		tier.Missed()
		return true
	}
	expect(t, tier.Get("k"), nil)
}

// A Get may have the item in its hands when the notice comes, and be asked whether notices arrive after that.
func TestWhatIsForgottenIsNotServedByAGetThatHasFoundItBefore(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*Tier){
		"forgotten":              func(tier *Tier) { tier.Forget("k") },
		"replaced and forgotten": func(tier *Tier) { tier.set("k", "new"); tier.Forget("k") },
		"evicted and forgotten": func(tier *Tier) {
			for i := range 1000 {
				tier.set(strconv.Itoa(i), "v")
			}
			tier.Forget("k")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier, _ := newTier(t, entries(10))
			tier.set("k", "old")
			tier.live = func() bool {
				tier.live = func() bool { return true }
				drop(tier)
				return true
			}
			expect(t, tier.Get("k"), nil)
		})
	}
}
