package tier

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/testing/expect"
)

func stranger(string) bool { return false }

func hear(t *testing.T, tier *Tier, source string, numbers ...uint64) {
	t.Helper()
	for _, n := range numbers {
		tier.Hear(Notice{Source: source, Number: n, Key: "other"}.String(), stranger)
	}
}

func TestNoticesAreWrittenAndRead(t *testing.T) {
	t.Parallel()
	for _, n := range []Notice{
		{Source: "a/0", Number: 1, Key: "k"}, {Source: "a", Number: maxNumber, Key: "a key with spaces\n"}, {Source: "a", Number: 7},
		{Source: "a", Number: 8, Key: "t+ ", Many: true},
	} {
		if got, ok := ParseNotice(n.String()); !ok || got != n {
			t.Errorf("%+v became %+v, %v", n, got, ok)
		}
	}
	for n, text := range map[Notice]string{ // processes of other versions read and write these
		{Source: "a/0", Number: 1, Key: "k 1"}:         "a/0 1 k 1",
		{Source: "a", Number: 8, Key: "t", Many: true}: "a 8+ t",
	} {
		if n.String() != text {
			t.Errorf("%+v is written %q, not %q", n, n, text)
		}
	}
	for _, s := range []string{"", "a", "a 1", "a 0 k", "a x k", "a -1 k", "a 4611686018427387905 k", "a 18446744073709551615+ k", strings.Repeat("a", maxSource+1) + " 1 k"} {
		if got, ok := ParseNotice(s); ok {
			t.Errorf("%q became %+v", s, got)
		}
	}
}

// Not parallel: others' memory would count.
func TestNoticesOfLongKeysAreNotKept(t *testing.T) {
	tier, _ := newTier(t, entries(10))
	before := inUse()
	for i := range 100 {
		tier.Hear(Notice{Source: fmt.Sprint("source-", i), Number: 1, Key: strings.Repeat("k", 1<<20)}.String(), stranger)
	}
	if kept := int64(inUse()) - int64(before); kept > 10<<20 {
		t.Errorf("%d MiB are kept", kept>>20)
	}
	expect.Equal(t, "sources", len(tier.feed.sources), 100)
}

// inUse is how many bytes are in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestOwnNoticesForgetNothing(t *testing.T) {
	t.Parallel()
	tier, _ := newTier(t, entries(10))
	tier.set("k", "v")
	tier.Hear(Notice{Source: "me/0", Number: 1, Key: "k"}.String(), func(source string) bool { return source == "me/0" })
	has(t, tier.Get("k"), "v")
	tier.Hear(Notice{Source: "you/0", Number: 1, Key: "k"}.String(), func(source string) bool { return source == "me/0" })
	has(t, tier.Get("k"), nil)
}

func TestNoticesMayComeTwiceAndInAnyOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, entries(10))
		tier.set("k", "v")
		hear(t, tier, "a", 41) // whatever came before the first is not missing
		for start := uint64(42); start < 500; start += 10 {
			for _, i := range rand.Perm(10) {
				hear(t, tier, "a", start+uint64(i), start)
			}
			hear(t, tier, "a", start)
			has(t, tier.Get("k"), "v")
		}
		time.Sleep(2 * grace)
		has(t, tier.Get("k"), "v")
		if s := tier.feed.sources["a"]; len(s.early) > 0 {
			t.Errorf("%d numbers are kept", len(s.early))
		}
	})
}

func TestTierIsNotServedFromWhileANoticeIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, entries(10))
		tier.set("k", "v")
		hear(t, tier, "a", 1, 2)
		hear(t, tier, "b", 7)
		hear(t, tier, "a", 4)
		has(t, tier.Get("k"), nil)
		hear(t, tier, "b", 8, 10)
		hear(t, tier, "a", 3)
		has(t, tier.Get("k"), nil)
		hear(t, tier, "b", 9)
		has(t, tier.Get("k"), "v")
	})
}

func TestAllIsVoidWhenAMissingNoticeDoesNotCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, entries(10))
		tier.set("k", "v")
		hear(t, tier, "a", 1, 3)
		time.Sleep(grace / 2)
		hear(t, tier, "b", 1, 3) // a later gap of another
		time.Sleep(grace/2 + time.Millisecond)
		expect.Equal(t, "value", tier.GetAnyway("k"), nil)
		tier.set("l", "v")
		has(t, tier.Get("l"), nil)
		time.Sleep(grace)
		has(t, tier.Get("l"), nil)
		tier.set("l", "v")
		has(t, tier.Get("l"), "v")
		hear(t, tier, "a", 2, 4) // 2 at last
		has(t, tier.Get("l"), "v")
	})
}

// Numbers that never come, one after the other, must not put each other off for ever.
func TestEveryGapIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, entries(10))
		hear(t, tier, "a", 1)
		for n := uint64(3); n < 60; n += 2 {
			hear(t, tier, "a", n)
			time.Sleep(grace / 4)
		}
		time.Sleep(2 * grace)
		tier.set("k", "v")
		has(t, tier.Get("k"), "v")
	})
}

// Whoever asks gives up what is overdue. If nobody does, whatever comes in does.
func TestAGapIsGivenUpThoughNobodyAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, entries(10))
		hear(t, tier, "a", 1)
		for n := uint64(3); n < 1000; n++ {
			hear(t, tier, "a", n)
			time.Sleep(grace / 10)
		}
		if kept := len(tier.feed.sources["a"].early); kept > 20 {
			t.Errorf("%d numbers are kept", kept)
		}
	})
}

func TestTooManySourcesAreForgotten(t *testing.T) {
	t.Parallel()
	tier, _ := newTier(t, entries(10))
	tier.set("k", "v")
	hear(t, tier, "gap", 1, 3)
	for i := range maxSources {
		hear(t, tier, time.Duration(i).String(), 1)
	}
	if n := len(tier.feed.sources); n > maxSources {
		t.Errorf("%d sources", n)
	}
	if tier.feed.waiting(clock.Mono()) {
		t.Error("still waiting")
	}
	expect.Equal(t, "value", tier.GetAnyway("k"), nil)
}

func FuzzParseNotice(f *testing.F) {
	for _, seed := range []string{"", "a 1 k", "a 1+ *", "a 0 k", "a 18446744073709551616 k", " 1 ", "a  1 k", "a 1", "a +1 k", "a 01 k", "a 1++ k"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		n, ok := ParseNotice(message)
		if !ok {
			return
		}
		if again, ok := ParseNotice(n.String()); !ok || again != n {
			t.Errorf("%q is %+v, and that is %+v, %v", message, n, again, ok)
		}
		if n.Number == 0 || len(n.Source) > maxSource {
			t.Errorf("%q is %+v", message, n)
		}
	})
}

func FuzzParseRepetition(f *testing.F) {
	for _, seed := range []string{"", "a 1= 1", "a 2= 1", "a 1= 2", "a 0= 0", "a 1 k", "a 1= ", " 1= 1", "a  1= 1", "a 18446744073709551615= 1", "a 18446744073709551616= 1", "a +1= 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		r, ok := parseRepetition(message)
		if !ok {
			return
		}
		if again, ok := parseRepetition(r.String()); !ok || again != r {
			t.Errorf("%q is %+v, and that is %+v, %v", message, r, again, ok)
		}
		if r.first == 0 || r.first > r.last || len(r.source) > maxSource {
			t.Errorf("%q is %+v", message, r)
		}
		if _, notice := ParseNotice(message); notice {
			t.Errorf("%q is a notice, too", message)
		}
	})
}
