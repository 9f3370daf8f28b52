package tier

import (
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

func TestHotKeysSayAboutHowOftenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Unix(0, 0))
	h := NewHotKeys(2, manual.Clock())
	count := func(key string, n int) {
		h.keys.mu.Lock()
		defer h.keys.mu.Unlock()
		for range n {
			h.keys.countLocked(key)
		}
	}
	for range 10 { // seconds
		count("hot", 64)
		count("warm", 16)
		count("third", 8)
		count("once", 1)
		manual.Advance(rankEvery + 1)
	}
	top := h.Top()
	if len(top) != 2 || top[0].Key != "hot" || top[1].Key != "warm" {
		t.Fatalf("%+v", top)
	}
	for i, want := range []float64{64 * sampled, 16 * sampled} {
		if got := top[i].PerSecond; got < want*0.8 || got > want*1.2 {
			t.Errorf("%s: %v gets a second, want about %v", top[i].Key, got, want)
		}
	}
	manual.Advance(time.Hour)
	if left := h.Top(); len(left) > 0 {
		t.Errorf("an hour later: %+v", left)
	}
}

func TestKeysThatChanceMakesLookHotAreNotShown(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Unix(0, 0))
	h := NewHotKeys(16, manual.Clock())
	h.keys.mu.Lock()
	for range 3 { // 50 Gets a second, at ordinary load
		h.keys.countLocked("twice")
	}
	for range shownCount {
		h.keys.countLocked("hot")
	}
	h.keys.mu.Unlock()
	if top := h.Top(); len(top) != 1 || top[0].Key != "hot" {
		t.Errorf("%+v", top)
	}
}

func TestAKeyOfAnyLengthIsNotKeptForItsCount(t *testing.T) {
	t.Parallel()
	h := NewHotKeys(2, clock.Clock{})
	long := strings.Repeat("x", longestHot+1)
	for range 100 * sampled {
		h.Note(long)
	}
	if len(h.keys.counts) > 0 {
		t.Error("it is kept")
	}
}
