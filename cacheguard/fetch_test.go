package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// says is a Judge with one opinion.
func says(v Verdict) func(string) Verdict { return func(string) Verdict { return v } }

func TestFetchServesWhatTheJudgeLikes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	mustGet(t, g, "k", returns("v"))
	expect.Returns(t, "v", Hit, nil)(Fetch(t.Context(), g, "k", Source[string]{Judge: says(Serve), Load: func(context.Context, *string) (string, error) {
		return "", errors.New("not wanted")
	}}))
}

func TestFetchReplacesWhatTheJudgeDislikesAndTellsTheLoaderOfIt(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]Config{"in Redis": {}, "in the local tier": withLocal}, func(t *testing.T, _ string, cfg Config) {
		f := newFleet(t, standalone(t), 1, cfg).listening()
		g := f.guards[0]
		mustGet(t, g, "k", returns("old"))
		mustGet(t, g, "k", unwanted[string](t))
		expect.Returns(t, "old+new", Loaded, nil)(Fetch(t.Context(), g, "k", Source[string]{Judge: says(Replace), Load: func(_ context.Context, old *string) (string, error) {
			return *old + "+new", nil
		}}))
		f.stored()
		expect.Equal(t, "cached", mustGet(t, g, "k", unwanted[string](t)), "old+new")
	})
}

func TestFetchRefreshesInTheBackgroundOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	mustGet(t, g, "k", returns("old"))
	begun, release := make(chan struct{}, 10), make(chan struct{})
	source := Source[string]{
		Judge: func(v string) Verdict {
			if v == "old" {
				return Refresh
			}
			return Serve
		},
		Load: func(context.Context, *string) (string, error) {
			begun <- struct{}{}
			<-release
			return "new", nil
		},
	}
	for range 5 {
		expect.Returns(t, "old", Stale, nil)(Fetch(t.Context(), g, "k", source))
	}
	<-begun
	close(release)
	redistest.Await(t, "the value is replaced", func() bool {
		v, _, err := Fetch(t.Context(), g, "k", source)
		return v == "new" && err == nil
	})
	expect.Equal(t, "further loads", len(begun), 0)
}

// Two instances find the same value unfit: one of them loads, and the other gets what it loaded.
func TestFetchReplacesOnceInTheFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{}).listening()
	mustGet(t, f.guards[0], "k", returns("old"))
	db := newSource("new")
	replies := make(chan reply[string], 2)
	for _, g := range f.guards {
		go func() { // owner: the test; ends with the Fetch; joined by receiving
			v, _, err := Fetch(t.Context(), g, "k", Source[string]{Judge: says(Replace), Load: func(ctx context.Context, _ *string) (string, error) {
				return db.load(ctx)
			}})
			replies <- reply[string]{v, err}
		}()
	}
	<-db.begun
	f.awaitRegistered("k", 1)
	close(db.release)
	want(t, replies, "new")
	want(t, replies, "new")
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

func TestFetchWithoutLoadOnlyLooks(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	expectNotCached(t, g, Source[string]{})
	mustGet(t, g, "k", returns("v"))
	expect.Returns(t, "v", Hit, nil)(Fetch(t.Context(), g, "k", Source[string]{}))
	expectNotCached(t, g, Source[string]{Judge: says(Replace)})
	if v, _, err := Fetch(t.Context(), g, "k", Source[string]{Judge: says(Refresh)}); v != "v" || err != nil {
		t.Errorf("of what the judge would have refreshed: %q, %v", v, err)
	}
}

func TestFetchWithoutLoadDoesNotLoadWhenRedisIsDown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := newGuard(t, server.Client(t), Config{})
	server.Kill()
	expectNotCached(t, g, Source[string]{})
}

// The invalidation comes between the read and the lease. The value that the read found must not be confirmed, say by a 304.
func TestFetchDoesNotShowTheLoaderAValueThatWasInvalidatedSinceItWasRead(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(f *fleet){
		"gone": func(f *fleet) { mustInvalidate(f.t, f.guards[1], "k") },
		"replaced": func(f *fleet) {
			mustInvalidate(f.t, f.guards[1], "k")
			mustGet(f.t, f.guards[1], "k", returns("other"))
		},
		"there": func(*fleet) {},
	}, func(t *testing.T, name string, replace func(f *fleet)) {
		f, proxy := broken(t, shared, Config{RedisTimeout: time.Minute})
		mustGet(t, f.guards[1], "k", returns("old"))
		held := proxy.On(scriptOf("acquire"), redistest.Hold)
		got := make(chan string, 1)
		go func() { // owner: the test; ends with the load; joined by receiving
			v, _, err := Fetch(t.Context(), f.guards[0], "k", Source[string]{Judge: says(Replace), Load: func(_ context.Context, old *string) (string, error) {
				if old == nil {
					return "new", nil
				}
				return *old + " made good", nil
			}})
			expect.ErrorIs(t, err)
			got <- v
		}()
		<-held.Hit()
		replace(f)
		held.Remove()
		expect.Equal(t, "value", <-got, map[string]string{"gone": "new", "replaced": "other made good", "there": "old made good"}[name])
	})
}

// The invalidation comes while the value is being replaced: nothing may be stored.
func TestFetchStoresNothingThatAnInvalidateOvertook(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g := f.guards[0]
	mustGet(t, g, "k", returns("old"))
	_, _, err := Fetch(t.Context(), g, "k", Source[string]{Judge: says(Replace), Load: func(ctx context.Context, _ *string) (string, error) {
		mustInvalidate(t, g, "k")
		return "overtaken", nil
	}})
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "stored", f.exists(f.value("k")), false)
}

// Work that would be done without the Guard too neither waits for loads that MaxLoads holds up, nor holds them up.
func TestAnUnlimitedLoadDoesNotCountForMaxLoads(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{MaxLoads: 1}).guards[0]
	unlimited := func(load func(context.Context, *string) (string, error)) {
		expect.Returns(t, "v", Loaded, nil)(Fetch(t.Context(), g, rand.Text(), Source[string]{Load: load, Unlimited: true}))
	}
	mustGet(t, g, "limited", func(context.Context) (string, error) {
		unlimited(func(context.Context, *string) (string, error) { return "v", nil })
		return "v", nil
	})
	unlimited(func(context.Context, *string) (string, error) {
		mustGet(t, g, "another", returns("v")) // not a part of that load: its context is the test's
		return "v", nil
	})
}

// What a load has read may have been invalidated since, before a call came that joins it. Only in Redis its stamp tells.
func TestWhatALoadReadAndDidNotMakeIsForItsOwnCallAlone(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(f *fleet, p *redistest.Proxy){
		"with a lease": func(*fleet, *redistest.Proxy) {},
		"bypassed":     func(f *fleet, _ *redistest.Proxy) { f.guards[0].Bypass(true) },
		"without Redis": func(_ *fleet, p *redistest.Proxy) {
			p.On(func([]string) bool { return true }, redistest.ReplyError("LOADING for a while"))
		},
	}, func(t *testing.T, _ string, without func(f *fleet, p *redistest.Proxy)) {
		f, proxy := broken(t, shared, Config{MaxLoads: 1})
		f.events.quiet = true
		g, other := f.guards[0], newSource("other")
		busy := async(g, "other", other.load)
		<-other.begun
		without(f, proxy)
		fetch := func(load func(context.Context, *string) (string, error)) <-chan reply[string] {
			c := make(chan reply[string], 1)
			go func() { // owner: the test; ends with the load; joined by receiving
				v, _, err := Fetch(t.Context(), g, "k", Source[string]{Load: load, Made: new(Made)})
				c <- reply[string]{v, err}
			}()
			return c
		}
		stored := fetch(func(ctx context.Context, _ *string) (string, error) {
			KeepTags(ctx)
			return "old", nil
		})
		redistest.Await(t, "it waits for a slot", func() bool { return g.flights.Count(nil).Running == 2 })
		mustInvalidate(t, f.guards[1], "k") // of which this instance need not hear
		later := fetch(func(context.Context, *string) (string, error) { return "new", nil })
		redistest.Await(t, "a call joins it", func() bool { return g.flights.Count(nil).Callers == 3 })
		close(other.release)
		want(t, stored, "old")
		want(t, later, "new")
		want(t, busy, "other")
	})
}

// An absence that was read before the value was stored does not answer a call that begins after that.
func TestFetchWithoutLoadFindsWhatWasStoredBeforeItBegan(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: 15 * time.Second})
	late := proxy.On(steps["get"], redistest.HoldReply).Times(1)
	fetch := func() <-chan reply[string] {
		c := make(chan reply[string], 1)
		go func() { // owner: the test; ends with Fetch; joined by receiving
			v, _, err := Fetch(t.Context(), f.guards[0], "k", Source[string]{})
			c <- reply[string]{v, err}
		}()
		return c
	}
	first := fetch()
	<-late.Hit() // Redis has said that there is nothing
	mustGet(t, f.guards[1], "k", returns("v"))
	redistest.Await(t, "the value is stored", func() bool { return f.exists(f.value("k")) })
	second := fetch()
	polls := 0
	redistest.Await(t, "the second has its answer, or waits for the first one's", func() bool {
		polls++
		return len(second) == 1 || polls > 100
	})
	late.Release()
	want(t, second, "v")
	<-first
}

// The next call on this Guard gets what a load has returned, even if the load ran for another loader.
func TestFetchWithoutLoadWaitsWhileAValueIsStored(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"a caller", "a loader"} {
		expect.Beside(t, "for "+by, func(t *testing.T) {
			f, proxy := broken(t, shared, Config{RedisTimeout: 15 * time.Second, LeaseTTL: time.Minute})
			g := f.guards[0]
			fill := proxy.On(steps["fill"], redistest.Hold).Times(1)
			get := func(ctx context.Context) (string, error) { return Get(ctx, g, "k", returns("v")) }
			if by == "a caller" {
				_, err := get(t.Context())
				expect.Equal(t, "error", err, nil)
			} else {
				_, err := Get(t.Context(), g, "outer", get)
				expect.Equal(t, "error", err, nil)
			}
			<-fill.Hit()
			read := proxy.On(steps["get"], redistest.HoldReply).Times(1)
			found := make(chan error, 1)
			go func() { // owner: the test; ends with Fetch; joined by receiving
				_, _, err := Fetch(t.Context(), g, "k", Source[string]{})
				found <- err
			}()
			<-read.Hit() // Redis has said that there is nothing
			fill.Release()
			redistest.Await(t, "the value is stored", func() bool { return f.exists(f.value("k")) })
			read.Release()
			expect.Equal(t, "error of Fetch", <-found, nil)
		})
	}
}

func expectNotCached(t *testing.T, g *Guard, of Source[string]) {
	t.Helper()
	_, _, err := Fetch(t.Context(), g, "k", of)
	expect.ErrorIs(t, err, ErrNotCached)
}
