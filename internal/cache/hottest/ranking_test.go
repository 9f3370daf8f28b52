package hottest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

func TestHotKeysSayAboutHowOftenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Unix(0, 0))
	h := NewRanking(2, manual.Clock())
	count := func(key string, n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for range n {
			h.countLocked(key)
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
	h := NewRanking(16, manual.Clock())
	h.mu.Lock()
	for range 3 { // 50 Gets a second, at ordinary load
		h.countLocked("twice")
	}
	for range shownCount {
		h.countLocked("hot")
	}
	h.mu.Unlock()
	if top := h.Top(); len(top) != 1 || top[0].Key != "hot" {
		t.Errorf("%+v", top)
	}
}

func TestAKeyOfAnyLengthIsNotKeptForItsCount(t *testing.T) {
	t.Parallel()
	h := NewRanking(2, clock.Clock{})
	long := strings.Repeat("x", longest+1)
	for range 100 * sampled {
		h.NoteShort(long)
	}
	if len(h.of) > 0 {
		t.Error("it is kept")
	}
}

func TestAGetDoesNotWaitWhileTheHottestKeysAreDetermined(t *testing.T) {
	t.Parallel()
	r := NewRanking(2, clock.Clock{})
	r.mu.Lock()
	defer r.mu.Unlock()
	for range 100 * sampled {
		r.Note("k")
	}
}

func TestOfAnyNumberOfKeysOnlySomeAreCounted(t *testing.T) {
	t.Parallel()
	r := NewRanking(2, clock.NewManual(time.Unix(0, 0)).Clock())
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range 1000 {
		r.countLocked("hot")
		r.countLocked(strconv.Itoa(i))
		if n := len(r.of); n > 2*counters {
			t.Fatalf("%d keys are counted", n)
		}
	}
	if n := r.of["hot"].seen; n != 1000 {
		t.Errorf("half of all are for one key, and %d of 1000 were seen", n)
	}
}
