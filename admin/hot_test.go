package admin

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/manual"
)

func newHotKeys() (*hotKeys, *manual.Clock) {
	moved := manual.New(time.Unix(0, 0))
	return &hotKeys{now: moved.Clock().Now}, moved
}

func TestHotKeysSayAboutHowOftenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	for name, times := range map[string]int{"all samples of the window are kept": 1, "there are more": 50} {
		h, moved := newHotKeys()
		for range 300 { // hundredths of a second
			for range times {
				for i, key := range []string{"hot", "hot", "hot", "hot", "warm", "warm"} {
					h.addLocked(key)
					h.addLocked("cold" + strconv.Itoa(i))
				}
			}
			moved.Advance(10 * time.Millisecond)
		}
		top := h.top()
		expect.Equal(t, name+": the first", top[0].key, "hot")
		expect.Equal(t, name+": the second", top[1].key, "warm")
		for i, want := range []float64{400, 200} {
			want *= float64(times) * sampled
			if got := top[i].perSecond; got < want*0.8 || got > want*1.3 {
				t.Errorf("%s: %s: %v gets a second, want about %v", name, top[i].key, got, want)
			}
		}
		moved.Advance(time.Hour)
		expect.Equal(t, name+": an hour later", len(h.top()), 0)
	}
}

func TestKeysThatChanceMakesLookHotAreNotShown(t *testing.T) {
	t.Parallel()
	h, _ := newHotKeys()
	for range shownHot - 1 {
		h.addLocked("seldom")
	}
	for range shownHot {
		h.addLocked("hot")
	}
	top := h.top()
	expect.Equal(t, "keys", len(top), 1)
	expect.Equal(t, "the one", top[0].key, "hot")
}

func TestOfAKeyOfAnyLengthAndOfAnyNumberOfKeysOnlySomeIsKept(t *testing.T) {
	t.Parallel()
	h, _ := newHotKeys()
	long := strings.Repeat("k", longestOf+1)
	for range 100 * sampled {
		h.note(long)
	}
	seen, _ := h.lately()
	expect.Equal(t, "long keys", len(seen), 0)
	for i := range 2 * len(h.samples) {
		h.addLocked(strconv.Itoa(i))
	}
	seen, _ = h.lately()
	expect.Equal(t, "keys", len(seen), len(h.samples))
}

func TestAnAnswerDoesNotWaitWhileHotKeysAreLookedFor(t *testing.T) {
	t.Parallel()
	h, _ := newHotKeys()
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 100 * sampled {
		h.note("k")
	}
}
