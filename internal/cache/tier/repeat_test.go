package tier

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// repeats makes the notices of a process with two parts, and collects what it repeats.
func repeats(t *testing.T) (n *Notices, said func() []string) {
	return repeatsUnless(t, new(atomic.Bool), new(atomic.Bool))
}

// repeatsUnless is repeats while Redis refuses what it says, or does not answer.
func repeatsUnless(t *testing.T, mute, silent *atomic.Bool) (n *Notices, said func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var mu sync.Mutex
	var all []string
	n = NewNotices("channel", 2)
	n.id = "me"
	n.Begin = func() {
		go n.Repeat(ctx, func(part int, message string) (refused, answered bool) { // owner: the test; stop: its end; joined by the bubble
			mu.Lock()
			defer mu.Unlock()
			all = append(all, fmt.Sprint(part, ": ", message))
			return mute.Load(), !silent.Load()
		})
	}
	return n, func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func TestASourceSaysItsLastNumberAgainAfterAboutOneAndFourSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, said := repeats(t)
		n.Next(1, "k")
		n.Next(1, "k")
		time.Sleep(time.Second)
		if len(said()) > 0 {
			t.Fatalf("said %q while notices may be under way", said())
		}
		time.Sleep(gathering)
		expect.Equal(t, "said", strings.Join(said(), ", "), "1: me/1 2= 1")
		n.NextOfMany(0, All)
		time.Sleep(3 * time.Second)
		expect.Equal(t, "said", strings.Join(said(), ", "), "1: me/1 2= 1, 0: me/0 1= 1, 1: me/1 2= 1")
		time.Sleep(time.Minute)
		n.Next(1, "k")
		time.Sleep(time.Minute)
		expect.Equal(t, "then said", strings.Join(said()[3:], ", "), "0: me/0 1= 1, 1: me/1 3= 3, 1: me/1 3= 3")
	})
}

func TestANumberThatIsRefusedIsRepeatedUntilItIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mute atomic.Bool
		n, said := repeatsUnless(t, &mute, new(atomic.Bool))
		var told []string
		n.Changed = func(refused string) { told = append(told, refused) }
		mute.Store(true)
		n.Next(1, "k")
		time.Sleep(gathering + time.Millisecond)
		n.Next(1, "k") // gathered by another Repeat, which is refused, too
		time.Sleep(time.Minute)
		expect.Equal(t, "refused", n.Refused(), 2)
		if all := said(); all[len(all)-1] != "1: me/1 2= 1" || len(all) > 40 {
			t.Errorf("said %q; want both numbers in the end, now and then", all)
		}
		mute.Store(false)
		time.Sleep(time.Minute)
		expect.Equal(t, "refused", n.Refused(), 0)
		expect.Equal(t, "told", strings.Join(told, ", "), "channel, ")
		before := len(said())
		time.Sleep(time.Minute)
		expect.Equal(t, "said after that", len(said()), before)
	})
}

func repeat(t *testing.T, tier *Tier, source string, first, last uint64) {
	t.Helper()
	payload := repetition{source, first, last}.String()
	if n, ok := ParseNotice(payload); ok {
		t.Fatalf("%q is a notice: %+v", payload, n)
	}
	tier.Hear(payload, stranger)
}

func TestALastNoticeThatIsLostIsMissedWhenItsNumberIsRepeated(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *Tier){
		"of a known source":             func(t *testing.T, tier *Tier) { hear(t, tier, "a", 7, 8) },
		"of a new source":               func(*testing.T, *Tier) {},
		"before others of a new source": func(t *testing.T, tier *Tier) { hear(t, tier, "a", 10) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tier, _ := newTier(t, entries(10))
				time.Sleep(settled + time.Millisecond)
				before(t, tier)
				tier.set("k", "v")
				repeat(t, tier, "a", 9, 10)
				has(t, tier.Get("k"), nil)
				time.Sleep(grace + time.Millisecond)
				expect.Equal(t, "value", tier.GetAnyway("k"), nil)
				tier.set("k", "v")
				repeat(t, tier, "a", 9, 10)
				has(t, tier.Get("k"), "v")
				hear(t, tier, "a", 11)
				has(t, tier.Get("k"), "v")
			})
		})
	}
}

// Notices that a source made before the subscription stood are not lost. Later ones that are repeated in these seconds come again.
func TestARepetitionOfWhatNobodyListenedToChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, entries(10))
		tier.Missed()
		time.Sleep(gathering + firstRepeat + lastRepeat)
		hear(t, tier, "b", 8)
		tier.set("k", "v")
		repeat(t, tier, "a", 9, 10)
		repeat(t, tier, "b", 7, 8)
		has(t, tier.Get("k"), "v")
		repeat(t, tier, "b", 8, 9)
		has(t, tier.Get("k"), nil)
	})
}

func TestARepetitionOfWhatWasHeardChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, entries(10))
		hear(t, tier, "a", 7, 8, 9)
		tier.set("k", "v")
		repeat(t, tier, "a", 7, 9)
		repeat(t, tier, "a", 8, 8)
		has(t, tier.Get("k"), "v")
		time.Sleep(2 * grace)
		has(t, tier.Get("k"), "v")
	})
}

func TestANoticeThatComesAfterItsRepetitionEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, entries(10))
		hear(t, tier, "a", 7)
		tier.set("k", "v")
		repeat(t, tier, "a", 7, 9)
		hear(t, tier, "a", 9)
		has(t, tier.Get("k"), nil)
		hear(t, tier, "a", 8)
		has(t, tier.Get("k"), "v")
		repeat(t, tier, "a", 10, 11)
		hear(t, tier, "a", 10)
		has(t, tier.Get("k"), nil)
		hear(t, tier, "a", 11)
		has(t, tier.Get("k"), "v")
		time.Sleep(2 * grace)
		has(t, tier.Get("k"), "v")
	})
}

func TestRepetitionsAreWrittenAndRead(t *testing.T) {
	t.Parallel()
	r := repetition{"a/0", 9, 12}
	if text := r.String(); text != "a/0 12= 9" { // processes of other versions write these
		t.Errorf("written %q", text)
	}
	if got, ok := parseRepetition(r.String()); !ok || got != r {
		t.Errorf("became %+v, %v", got, ok)
	}
	if IsRepetition("a 12 k") || IsRepetition("a 12+ k") || !IsRepetition(r.String()) {
		t.Error("a notice and a repetition cannot be told apart")
	}
	for _, s := range []string{"", "a", "a 1=", "a 1= x", "a 1= 0", "a 1= 2", "a 0= 0", "a 12 k", "a 12+ 3"} {
		if got, ok := parseRepetition(s); ok {
			t.Errorf("%q became %+v", s, got)
		}
	}
}

// What times out, or is not sent, was not let through.
func TestWhatWasRefusedStaysRefusedWhileRedisDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mute, silent atomic.Bool
		n, _ := repeatsUnless(t, &mute, &silent)
		var told []string
		n.Changed = func(refused string) { told = append(told, refused) }
		mute.Store(true)
		n.Next(1, "k")
		time.Sleep(time.Minute)
		silent.Store(true)
		mute.Store(false)
		time.Sleep(time.Minute)
		expect.Equal(t, "refused", n.Refused(), 1)
		expect.Equal(t, "told", strings.Join(told, ", "), "channel")
		silent.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect.Equal(t, "refused", n.Refused(), 0)
		expect.Equal(t, "told", strings.Join(told, ", "), "channel, ")
	})
}
