package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/observe"
)

func TestEachCacheHasItsHitRatioAndALineOfIt(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{Instance: "shop-1"})
	products, err := cacheguard.NewCache(g, cacheguard.CacheConfig[int, string]{
		Name: "product", Load: func(context.Context, int) (string, error) { return "one", nil },
	})
	expect.ErrorIs(t, err)
	h := New(g)
	keep(t, g, "a")
	look(t, h)
	for range 3 {
		_, err := cacheguard.Get(t.Context(), g, "a", func(context.Context) (string, error) { return "", nil })
		expect.ErrorIs(t, err)
	}
	_, err = products.Get(t.Context(), 1)
	expect.ErrorIs(t, err)
	_, err = products.GetMany(t.Context(), []int{2, 3})
	expect.ErrorIs(t, err)
	s := look(t, h)
	expect.Equal(t, "instance", s.Guards[0].Instance, "shop-1")
	others, named := s.Guards[0].Caches[0], s.Guards[0].Caches[1]
	expect.Equal(t, "ratio of gets", others.Ratio, 1)
	expect.Equal(t, "samples", len(others.Ratios), 2)
	expect.Equal(t, "ratio of the cache", named.Ratio, 0)
	expect.Equal(t, "name", named.Name, "product")
	expect.Equal(t, "loads of the cache", named.Answers["loaded"], 3)
	if named.Rate <= 0 || named.Loads <= 0 || named.LoadTook < 0 {
		t.Errorf("%+v", named)
	}
	expect.Equal(t, "nobody asks: ratio", look(t, h).Guards[0].Caches[0].Ratio, -1)
}

func TestWhatIsInvalidatedAndNoLoadHasHadIsShown(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{})
	h := New(g)
	expect.Equal(t, "kinds before there was a load", look(t, h).Guards[0].Tags == nil, true)
	keep(t, g, "price:1")
	expect.ErrorIs(t, g.InvalidateTags(t.Context(), "categroy:shoes"))
	expect.ErrorIs(t, g.Invalidate(t.Context(), "pirce:1", "price:2"))
	s := look(t, h).Guards[0]
	expect.Equal(t, "tags", s.NoTags["categroy"], 1)
	expect.Equal(t, "keys", s.NoKeys["pirce"], 1)
	expect.Equal(t, "all of them", len(s.NoTags)+len(s.NoKeys), 2)
	expect.Equal(t, "kinds of keys", strings.Join(s.Keys, " "), "price")
}

func TestSamplesAreBounded(t *testing.T) {
	t.Parallel()
	h := New(newGuard(t, cacheguard.Config{}))
	for range kept + 10 {
		look(t, h)
	}
	expect.Equal(t, "samples", len(look(t, h).Guards[0].Caches[0].Ratios), kept)
}

func TestALoadIsShownWhileItRunsAndAmongTheSlowestAfterwards(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{})
	h := New(g)
	_, err := cacheguard.Get(t.Context(), g, "slow", func(context.Context) (string, error) {
		running := look(t, h).Guards[0].Running
		if len(running) != 1 || running[0].Key != "slow" {
			t.Errorf("running: %+v", running)
		}
		var found foundKey
		parse(t, get(t, h, "/?view=key&guard=0&key=slow", http.StatusOK), &found)
		if found.Load == nil || found.State != "missing" {
			t.Errorf("%+v", found)
		}
		return "", errors.New("no such table")
	})
	if err == nil {
		t.Error("it did not fail")
	}
	s := look(t, h).Guards[0]
	if len(s.Running) != 0 || len(s.Slowest) != 1 || s.Slowest[0].Key != "slow" || !s.Slowest[0].Failed {
		t.Errorf("running %+v, slowest %+v", s.Running, s.Slowest)
	}
	expect.Equal(t, "failed", s.Caches[0].Failed, 1)
	redistest.Await(t, "the failure is remembered", func() bool { // for a moment, and for longer each time
		_, _ = cacheguard.Get(t.Context(), g, "slow", func(context.Context) (string, error) { return "", errors.New("no such table") })
		var found foundKey
		parse(t, get(t, h, "/?view=key&guard=0&key=slow", http.StatusOK), &found)
		return found.Failure == "no such table"
	})
}

func TestIntentsThatStandAreShownWithTheirInstanceAndAge(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{Instance: "shop-1"})
	h := New(g)
	in, err := g.Intend(t.Context(), cacheguard.Changes{Keys: []string{"a"}})
	expect.ErrorIs(t, err)
	var found foundKey
	redistest.Await(t, "it has stood for a while", func() bool {
		parse(t, get(t, h, "/?view=key&guard=0&key=a", http.StatusOK), &found)
		return len(found.Intents) == 1 && found.Intents[0].For > 0
	})
	expect.Equal(t, "instance", found.Intents[0].Instance, "shop-1")
	s := look(t, h).Guards[0]
	expect.Equal(t, "intents", s.Intents, 1)
	if s.Oldest <= 0 {
		t.Errorf("the oldest has stood for %v", s.Oldest)
	}
	expect.Equal(t, "it is", s.Stands, `intent on ["a"]`)
	expect.ErrorIs(t, in.Done(t.Context()))
	s = look(t, h).Guards[0]
	expect.Equal(t, "intents after Done", s.Intents, 0)
	expect.Equal(t, "the oldest of none", s.Oldest, 0)

	stats := g.Stats()
	for lasts, want := range map[time.Duration]float64{0: 0, standing: 0, 2 * standing: (2 * standing).Seconds()} {
		stats.OldestIntent = lasts
		expect.Equal(t, lasts.String(), troublesOf(&observe.Troubles{}, &stats)["intent"], want)
	}
}

func TestAFrozenRedisIsNotSlowToo(t *testing.T) {
	t.Parallel()
	lasts := observe.Troubles{Last: map[string]time.Duration{"outage": time.Minute, "slow": time.Minute}}
	for parts, want := range map[int]bool{0: false, 1: true} {
		_, is := troublesOf(&lasts, &cacheguard.Stats{SlowParts: parts, Subscribed: true})["slow"]
		expect.Equal(t, "slow", is, want)
	}
}

func TestTheHottestKeyComesFirst(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{Local: cacheguard.LocalConfig{MaxEntries: 10}})
	h := New(g)
	load := func(context.Context) (string, error) { return "", nil }
	redistest.Await(t, "it is hot", func() bool {
		for range 1000 {
			if _, err := cacheguard.Get(t.Context(), g, "hot", load); err != nil {
				t.Fatal(err)
			}
		}
		hot := look(t, h).Guards[0].Hot
		return len(hot) > 0 && hot[0].Key == "hot" && hot[0].Rate > 0
	})
}

func TestLocksThatThisProcessHoldsAreShown(t *testing.T) {
	t.Parallel()
	one, many := newMutex(t), newRWLock(t)
	h := NewHandler(Config{Lockers: []Locker{one, many, nil, io.NopCloser(nil)}}) // the last is no lock
	lease, err := one.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	_, err = many.RLock(t.Context(), "file")
	expect.ErrorIs(t, err)
	s := look(t, h)
	expect.Equal(t, "lockers", len(s.Lockers), 2)
	held := s.Lockers[0].Locks
	if len(held) != 1 || held[0].Name != "import" || held[0].Fence != lease.Fence() || held[0].Left <= 0 {
		t.Errorf("%+v", held)
	}
	expect.Equal(t, "mode", s.Lockers[1].Locks[0].Mode, "read")
	var found foundLock
	parse(t, get(t, h, "/?view=lock&locker=0&name=import", http.StatusOK), &found)
	expect.Equal(t, "holder", found.Instance, "shop-1")
	expect.Equal(t, "holders", found.Holders, 1)
	get(t, h, "/?view=lock&locker=2&name=import", http.StatusNotFound)
	expect.ErrorIs(t, lease.Unlock(t.Context()))
	expect.Equal(t, "held afterwards", look(t, h).Lockers[0].Held, 0)
}

func TestWhoAsksEveryTwoSecondsSeesEachSampleOnce(t *testing.T) {
	t.Parallel()
	h := New(newGuard(t, cacheguard.Config{}))
	h.shown.sampled = time.Now().Add(pause/10 - pause) // a little too early
	get(t, h, "/?view=data", http.StatusOK)
	expect.Equal(t, "a sample was taken", h.shown.over > 0, true)
}

func TestWhatIsWrongIsShown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	g, err := cacheguard.New(s.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: "shop"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = g.Close() }) // always nil
	h := New(g)
	expect.Equal(t, "troubles", len(look(t, h).Guards[0].Troubles), 0)
	g.Bypass(true)
	if lasts, is := look(t, h).Guards[0].Troubles["bypassed"]; !is || lasts <= 0 {
		t.Error("it is not shown that the cache is bypassed")
	}
	expect.Equal(t, "where it is bypassed", look(t, h).Guards[0].Bypassed, "on this instance")
	g.Bypass(false)
	expect.Equal(t, "where it is bypassed no more", look(t, h).Guards[0].Bypassed, "")
	expect.ErrorIs(t, g.BypassFleet(t.Context(), time.Hour))
	if where := look(t, h).Guards[0].Bypassed; !strings.HasPrefix(where, "on all instances, until 20") {
		t.Errorf("it is bypassed %q", where)
	}
	expect.ErrorIs(t, g.BypassFleet(t.Context(), 0))
	s.Kill()
	redistest.Await(t, "the outage is shown", func() bool {
		_, err := cacheguard.Get(t.Context(), g, "a", func(context.Context) (string, error) { return "", nil })
		expect.ErrorIs(t, err)
		return look(t, h).Guards[0].Troubles["outage"] > 0
	})
	g.Bypass(true)
	if one := look(t, h).Guards[0]; len(one.Order) != len(one.Troubles) || one.Order[0] != "outage" || !slices.Contains(one.Order, "bypassed") {
		t.Errorf("causes do not come first: %q of %v", one.Order, one.Troubles)
	} else if one.Cause != "outage" || !slices.Contains(one.Brought, "pending") || slices.Contains(one.Brought, "bypassed") {
		t.Errorf("%q brings %q", one.Cause, one.Brought)
	}
	g.Bypass(false)
	var found foundKey
	parse(t, get(t, h, "/?view=key&guard=0&key=a", http.StatusOK), &found)
	if found.Problem == "" || found.State != "unknown" {
		t.Errorf("a look-up without Redis: %+v", found)
	}
}

func TestLoadsThatFailAreShownAndCountAsGets(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{})
	failure := errors.New("relation products is locked")
	products, err := cacheguard.NewCache(g, cacheguard.CacheConfig[int, string]{
		Name: "product", Load: func(context.Context, int) (string, error) { return "", failure },
	})
	expect.ErrorIs(t, err)
	h := New(g)
	k := 0
	redistest.Await(t, "it is shown", func() bool {
		k++
		_, err := products.Get(t.Context(), k)
		expect.ErrorIs(t, err, failure)
		one := look(t, h).Guards[0].Caches[1]
		if one.Rate <= 0 || one.Ratio != 0 || one.AllRatio != 0 {
			t.Errorf("rate %v, ratio %v, of all %v", one.Rate, one.Ratio, one.AllRatio)
		}
		return one.Failing != nil && one.Failing.Last == failure.Error() && one.Failing.Failed == one.Failing.Loads
	})
}

// Each lasting trouble and each event of lately has words on the page; what else has happened is there as the log names it.
func TestThePageHasWordsForWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("page.js")
	expect.ErrorIs(t, err)
	has := func(text string) {
		t.Helper()
		if !strings.Contains(string(page), text) {
			t.Errorf("the page has no %q", text)
		}
	}
	g := newGuard(t, cacheguard.Config{})
	h := New(g)
	troubles := h.guards[0].seen.Troubles().Last
	expect.Equal(t, "troubles", len(troubles) > 0, true)
	for name := range troubles {
		has("\n    " + name + ": ['")
		has(" " + name + ": '") // aloud
	}
	events := reflect.TypeFor[lately]()
	for i := range events.NumField() {
		name := events.Field(i).Tag.Get("json")
		has("if (c.lately." + name + " > 0)")
		has("lately(c, '" + name + "')") // with an age
	}
	pages := reflect.TypeFor[pagesState]()
	for i := range pages.NumField() {
		if name, _, _ := strings.Cut(pages.Field(i).Tag.Get("json"), ","); pages.Field(i).Type == reflect.TypeFor[*pagesShare]() {
			has("if (p." + name + ") {")
		}
	}
	_, err = cacheguard.Get(t.Context(), g, "k", func(context.Context) (string, error) { panic("oops") })
	if err == nil {
		t.Error("no error of a panic")
	}
	expect.Equal(t, "panics", look(t, h).Guards[0].Happened["loader panicked"], 1)
	has("g.happened")
	has("' on ' + g.redis + ': '")
}

func TestThePageProvesWhichRedisAGuardUses(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{})
	h := New(g)
	state := func() string {
		var found foundKey
		parse(t, get(t, h, "/?view=key&guard=0&key=proof", http.StatusOK), &found)
		return found.State
	}
	expect.Equal(t, "before somebody writes there", state(), "missing")
	expect.ErrorIs(t, shared.Client(t).Set(t.Context(), h.guards[0].seen.Prefix+":{proof}", "cacheguardctl", time.Minute).Err())
	expect.Equal(t, "then", state(), "damaged")
	s := look(t, h)
	expect.Equal(t, "where it is", s.Guards[0].Redis, shared.Addr()+", database 0")
	expect.Equal(t, "as its Stats have it", s.Guards[0].Redis, g.Stats().Redis)
}
