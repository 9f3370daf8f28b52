package tier

import (
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/manual"
)

func TestAGetDoesNotWaitWhileTheHottestKeysAreDetermined(t *testing.T) {
	t.Parallel()
	h := newHot(2, clock.Clock{})
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 100 * sampled {
		h.note("k")
	}
}

func TestOfAnyNumberOfKeysOnlySomeAreCounted(t *testing.T) {
	t.Parallel()
	h := newHot(2, manual.New(time.Unix(0, 0)).Clock())
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range 1000 {
		h.countLocked("hot")
		h.countLocked(strconv.Itoa(i))
		if n := len(h.of); n > 2*counters {
			t.Fatalf("%d keys are counted", n)
		}
	}
	expect.Equal(t, "how often the hot key was seen", h.of["hot"].seen, 1000)
}

func TestAKeyThatIsAskedForOftenIsCountedAlthoughManyOthersCameBefore(t *testing.T) {
	t.Parallel()
	moved := manual.New(time.Unix(0, 0))
	h := newHot(8, moved.Clock())
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range counters * 8 {
		h.countLocked("first" + strconv.Itoa(i))
	}
	for i := range 100 {
		h.countLocked("often")
		h.countLocked("later" + strconv.Itoa(i))
	}
	moved.Advance(rankEvery + 1)
	h.countLocked("often")
	if !h.has("often") || h.has("first0") {
		t.Errorf("hot: %v", *h.top.Load())
	}
}
