package tier

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/leaks"
)

func newTier(t *testing.T, l Limits) (*Tier, *atomic.Bool) {
	t.Helper()
	live := new(atomic.Bool)
	live.Store(true)
	if l.TTL == 0 {
		l.TTL = time.Hour
	}
	tier, err := New(l, live.Load)
	expect.Must(t, err)
	t.Cleanup(tier.Close)
	return tier, live
}

func entries(n int) Limits { return Limits{MaxEntries: n} }

func (t *Tier) set(key, value string) {
	t.Keep(key, t.Mark(key), new(Item), value, len(value), time.Hour, time.Hour)
}

func has(t *testing.T, i *Item, want any) {
	t.Helper()
	var got any
	if i != nil {
		got = i.Value
	}
	expect.Equal(t, "value", got, want)
}

func TestWhatWasReadIsKept(t *testing.T) {
	t.Parallel()
	tier, _ := newTier(t, entries(10))
	has(t, tier.Get("k"), nil)
	tier.set("k", "v")
	has(t, tier.Get("k"), "v")
	has(t, tier.GetAnyway("k"), "v")
	tier.set("k", "w")
	has(t, tier.Get("k"), "w")
	tier.Forget("k")
	has(t, tier.Get("k"), nil)
	has(t, tier.GetAnyway("k"), nil)
}

func TestWhatIsReadWhileTheKeyIsForgottenIsNotKept(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(*Tier){
		"forgotten": func(tier *Tier) { tier.Forget("k") },
		"void":      func(tier *Tier) { tier.Void() },
		"missed":    func(tier *Tier) { tier.Missed() },
		"noticed": func(tier *Tier) {
			tier.Hear(Notice{Source: "other", Number: 5, Key: "k"}.String(), func(string) bool { return false })
		},
	} {
		tier, _ := newTier(t, entries(10))
		mark := tier.Mark("k")
		forget(tier)
		tier.Keep("k", mark, new(Item), "old", 3, time.Hour, time.Hour)
		if tier.Get("k") != nil || tier.GetAnyway("k") != nil {
			t.Error(name, ": kept")
		}
		tier.set("k", "new")
		has(t, tier.Get("k"), "new")
	}
}

func TestTierIsNeitherServedFromNorFilledWhileNoticesDoNotArrive(t *testing.T) {
	t.Parallel()
	tier, live := newTier(t, entries(10))
	tier.set("k", "v")
	live.Store(false)
	has(t, tier.Get("k"), nil)
	has(t, tier.GetAnyway("k"), "v")
	mark := tier.Mark("l")
	tier.Missed()
	live.Store(true)
	tier.Keep("l", mark, new(Item), "v", 1, time.Hour, time.Hour)
	for _, key := range []string{"k", "l"} {
		has(t, tier.Get(key), nil)
		has(t, tier.GetAnyway(key), nil)
	}
}

func TestNothingIsServedBeyondItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, Limits{MaxEntries: 10, TTL: 10 * time.Second})
		keep := func(key string, fresh, usable time.Duration) {
			tier.Keep(key, tier.Mark(key), new(Item), "v", 1, fresh, usable)
		}
		keep("short", 2*time.Second, 2*time.Second)
		keep("stale", 2*time.Second, 5*time.Second)
		keep("long", time.Hour, time.Hour)
		mark := tier.Mark("late")
		for _, step := range []struct {
			after      time.Duration
			get, stale string // the keys that are served
		}{
			{0, "short stale long ", "short stale long "},
			{2 * time.Second, "long ", "stale long "},
			{3 * time.Second, "long ", "long "},
			{5 * time.Second, "", ""},
		} {
			time.Sleep(step.after)
			get, stale := "", ""
			for _, key := range []string{"short", "stale", "long"} {
				if tier.Get(key) != nil {
					get += key + " "
				}
				if tier.GetAnyway(key) != nil {
					stale += key + " "
				}
			}
			if get != step.get || stale != step.stale {
				t.Errorf("after %v more: %q and %q", step.after, get, stale)
			}
		}
		tier.Keep("late", mark, new(Item), "v", 1, time.Hour, time.Hour) // the time counts from the mark
		has(t, tier.Get("late"), nil)
	})
}

func TestTierIsBounded(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]Limits{"entries": entries(100), "bytes": {MaxBytes: 100 * (overhead + 10)}} {
		tier, _ := newTier(t, l)
		for i := range 10_000 {
			tier.set(strconv.Itoa(i), "value")
		}
		tier.cache.(otterStore).CleanUp()
		if n := tier.Len(); n < 50 || n > 110 {
			t.Errorf("%s: %d are kept, want about 100", name, n)
		}
	}
}

func TestOnlyHotKeysAreKeptIfSoWanted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tier, _ := newTier(t, Limits{MaxEntries: 100, HotKeys: 2})
		ask := func() {
			for i := range 20_000 {
				tier.Get("hot" + strconv.Itoa(i%2))
				tier.Get("cold" + strconv.Itoa(i%5000))
			}
		}
		tier.set("hot0", "v")
		has(t, tier.Get("hot0"), nil)
		ask()
		time.Sleep(time.Second + time.Millisecond)
		ask()
		tier.set("hot0", "v")
		tier.set("hot1", "v")
		tier.set("cold1", "v")
		has(t, tier.Get("hot0"), "v")
		has(t, tier.Get("hot1"), "v")
		has(t, tier.Get("cold1"), nil)
		for range 10 { // nobody asks for them any more
			time.Sleep(time.Second + time.Millisecond)
			for range 20_000 {
				tier.Get("new")
			}
		}
		if tier.hot.has("hot0") || !tier.hot.has("new") {
			t.Error("the past is not forgotten")
		}
	})
}

// A call that begins after a key was forgotten must not see what was read before, not even for a moment.
func TestForgottenValuesDoNotFlashUp(t *testing.T) {
	t.Parallel()
	tier, _ := newTier(t, entries(10))
	var version, forgotten atomic.Int64
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				least := forgotten.Load()
				if i := tier.Get("k"); i != nil && i.Value.(int64) < least {
					t.Errorf("got %d after %d was forgotten", i.Value, least-1)
					return
				}
				mark := tier.Mark("k")
				tier.Keep("k", mark, new(Item), version.Load(), 8, time.Hour, time.Hour)
			}
		})
	}
	for range 50_000 {
		v := version.Add(1)
		tier.Forget("k")
		forgotten.Store(v)
	}
	close(done)
	readers.Wait()
}

func TestMain(m *testing.M) { leaks.Main(m) }

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
	has(t, tier.Get("k"), nil)
}

// A Get may have the item in its hands when the notice comes, and be asked whether notices arrive after that.
func TestWhatIsForgottenIsNotServedByAGetThatHasFoundItBefore(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*Tier){
		"forgotten":              func(tier *Tier) { tier.Forget("k") },
		"replaced and forgotten": func(tier *Tier) { tier.set("k", "new"); tier.Forget("k") },
		"evicted and forgotten": func(tier *Tier) {
			for i := range 1000 {
				tier.set(strconv.Itoa(i), "v")
			}
			tier.Forget("k")
		},
	}, func(t *testing.T, _ string, drop func(*Tier)) {
		tier, _ := newTier(t, entries(10))
		tier.set("k", "old")
		tier.live = func() bool {
			tier.live = func() bool { return true }
			drop(tier)
			return true
		}
		has(t, tier.Get("k"), nil)
	})
}
