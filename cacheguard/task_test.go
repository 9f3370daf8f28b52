package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/testing/expect"
)

type taskKey struct{}

// tasks is what Begin was called with, and how it ended.
type tasks struct {
	mu    sync.Mutex
	begun []string // task, and the one that it is a part of
	ended map[Task][]End
}

func (a *tasks) begin(ctx context.Context, task Task, keys []string) (context.Context, func(End)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	within, _ := ctx.Value(taskKey{}).(string)
	a.begun = append(a.begun, strings.TrimSpace(string(task)+" "+strings.Join(keys, "+")+" "+within))
	return context.WithValue(ctx, taskKey{}, "in "+string(task)), func(end End) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.ended == nil {
			a.ended = make(map[Task][]End)
		}
		a.ended[task] = append(a.ended[task], end)
	}
}

func (a *tasks) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(slices.Values(a.begun))
}

func TestTasksBelongToWhatTheyAreAPartOf(t *testing.T) {
	t.Parallel()
	var seen tasks
	g := newGuard(t, shared.Client(t), Config{Prefix: t.Name(), Hooks: Hooks{Begin: seen.begin}})
	why := errors.New("no")
	_, err := Get(t.Context(), g, "a", func(ctx context.Context) (int, error) {
		_, err := GetMany(ctx, g, []string{"b", "c"}, func(context.Context, []string) (map[string]int, error) { return nil, nil })
		return 0, errors.Join(err, why)
	})
	expect.ErrorIs(t, err, why)
	expect.ErrorIs(t, g.Update(t.Context(), "d", func(ctx context.Context) error { return g.Invalidate(ctx, "e", "f") }), nil)
	_ = g.Close() // always nil
	want := []string{"get a", "get_many b+c in load", "invalidate e+f in update", "load a in get", "load b+c in get_many", "update d"}
	if got := seen.all(); !slices.Equal(got, want) && !slices.Equal(got, append(slices.Clone(want[:4]), "load c+b in get_many", "update d")) {
		t.Errorf("tasks are %q, want %q", got, want)
	}
	for task, n := range map[Task]int{TaskGet: 1, TaskGetMany: 1, TaskLoad: 2, TaskUpdate: 1, TaskInvalidate: 1} {
		expect.Equal(t, "ends of "+string(task), len(seen.ended[task]), n)
	}
	expect.ErrorIs(t, seen.ended[TaskGet][0].Err, why)
}

func TestAPanicEndsItsTask(t *testing.T) {
	t.Parallel()
	var seen tasks
	g := newGuard(t, shared.Client(t), Config{Prefix: t.Name(), Hooks: Hooks{Begin: seen.begin}})
	_, _ = Get(t.Context(), g, "a", func(context.Context) (int, error) { panic("oh") })
	_ = g.Close() // always nil
	for _, task := range []Task{TaskGet, TaskLoad} {
		if ends := seen.ended[task]; len(ends) != 1 || ends[0].Err == nil {
			t.Errorf("%s ended with %v", task, ends)
		}
	}
}

func TestThoseWhoWaitKnowTheOriginOfTheLoad(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ origin, want string }{
		"short":           {"trace 7", "trace 7"},
		"with any byte":   {"\x00.\xff {}:\r\n", "\x00.\xff {}:\r\n"},
		"as long as may":  {strings.Repeat("x", 24), strings.Repeat("x", 24)},
		"too long":        {strings.Repeat("x", 25), ""},
		"none":            {"", ""},
		"looks like ours": {strings.Repeat(".", 24), strings.Repeat(".", 24)},
	} {
		expect.Beside(t, name, func(t *testing.T) {
			var seen tasks
			f := newFleet(t, standalone(t), 2, Config{})
			for i, g := range f.guards {
				g.cfg.Hooks.Begin = seen.begin
				if i == 0 {
					g.cfg.Hooks.Origin = func(context.Context) string { return test.origin }
				}
			}
			f.listening()
			db := newSource("v")
			first := async(f.guards[0], "k", db.load)
			<-db.begun
			expect.Equal(t, "encoding of the lease", f.redis.ObjectEncoding(t.Context(), f.lease("k")).Val(), "listpack")
			second := async(f.guards[1], "k", unwanted[string](t))
			f.awaitRegistered("k", 1)
			close(db.release)
			want(t, first, "v")
			want(t, second, "v")
			for _, g := range f.guards {
				_ = g.Close() // always nil
			}
			if ends := seen.ended[TaskWait]; len(ends) != 1 || ends[0].Origin != test.want || ends[0].Outcome != Shared {
				t.Errorf("waits ended with %+v, want the origin %q", ends, test.want)
			}
		})
	}
}

func TestAWaitEndsBeforeItsFlightLoadsItself(t *testing.T) {
	t.Parallel()
	var seen tasks
	f := newFleet(t, standalone(t), 2, Config{WaitTimeout: time.Millisecond})
	f.guards[1].cfg.Hooks.Begin = seen.begin
	f.listening()
	db := newSource("theirs")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	own := mustGet(t, f.guards[1], "k", func(context.Context) (string, error) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		expect.Equal(t, "waits that ended before the load", len(seen.ended[TaskWait]), 1)
		return "own", nil
	})
	expect.Equal(t, "value", own, "own")
	close(db.release)
	want(t, first, "theirs")
}

func TestAnObserverThatPanicsHarmsNobodyAndIsToldOnce(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	var after []What
	cfg.Observers = []Observer{
		ObserverFunc(func(context.Context, Event) { panic("observer") }),
		ObserverFunc(func(_ context.Context, e Event) { after = append(after, e.What) }),
	}
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	for range 3 {
		g.tell(t.Context(), EventTakeover, "k", nil)
	}
	expect.Equal(t, "what the next one is told", len(after), 3+1)
	expect.Equal(t, "that it panicked", after[1]+after[0], EventTakeover+EventObserver)
	expect.Equal(t, "lines", len(lines(text(), "an Observer panicked")), 1)
	expect.Says(t, lines(text(), "an Observer panicked")[0], "level=ERROR", "ObserverFunc", "panic=observer", "event=takeover")
	expect.Equal(t, "Get", mustGet(t, g, "k", returns("v")), "v")
}

func TestNewRefusesAnObserverThatIsNil(t *testing.T) {
	t.Parallel()
	expect.Says(t, expect.Err(New(shared.Client(t), Config{Observers: []Observer{nil}})), "Config.Observers")
}

// Metrics have the name of the Cache as a label.
func TestAnEventSaysOfWhichCacheItsKeyIs(t *testing.T) {
	t.Parallel()
	var cfg Config
	told := make(map[What]string)
	cfg.Observers = []Observer{ObserverFunc(func(_ context.Context, e Event) { told[e.What] = e.Kind + " " + e.Key })}
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	c, err := NewCache(g, CacheConfig[int, string]{Name: "thing", Load: func(context.Context, int) (string, error) { return "", errors.New("no") }})
	expect.ErrorIs(t, err)
	expect.Fails(t, expect.Err(c.Get(t.Context(), 1)))
	expect.Equal(t, "cache", told[EventCache], "thing ")
	expect.Equal(t, "load", told[EventLoad], "thing thing:1")
	expect.Equal(t, "get", told[EventGet], "thing thing:1")
}

func TestWhatASlowObserverIsStillToBeToldIsBounded(t *testing.T) {
	t.Parallel()
	var b beside
	for range mostBeside {
		b.add(Event{What: EventStepped})
	}
	for range 10 {
		b.add(Event{What: EventOvertaken, Key: "k"})
		b.add(Event{What: EventInvalidated, Key: "k"})
	}
	all := b.take()
	expect.Equal(t, "events", len(all), mostBeside+1)
	expect.Equal(t, "the last one, of everything", fmt.Sprint(all[mostBeside]), fmt.Sprint(Event{What: EventInvalidated}))
}

func TestInvalidationsAreToldOneAfterTheOtherAndTooManyAreOne(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	var told []Event // without a lock: by one goroutine at a time
	ended := make(chan struct{})
	g := newFleet(t, standalone(t), 1, Config{Observers: []Observer{On(EventInvalidated, func(_ context.Context, e Event) {
		switch told = append(told, e); {
		case len(told) == 1:
			close(begun)
			<-release
		case e.Key == "last":
			close(ended)
		}
	})}}).guards[0]
	g.onHeard(tier.Notice{Key: "first"})
	<-begun
	for range mostBeside + 1 {
		g.onHeard(tier.Notice{Key: "k"})
	}
	g.onHeard(tier.Notice{Key: "last"})
	close(release)
	<-ended
	expect.Equal(t, "told", len(told), 3)
	expect.Equal(t, "keys", fmt.Sprintf("%q %q %q", told[0].Key, told[1].Key, told[2].Key), `"first" "" "last"`)
	g.onHeard(tier.Notice{Key: epoch.OfKind("product"), Many: true})
	allTold(t, g)
	expect.Equal(t, "of a Cache", told[3].Kind, "product")
}

func TestOnJoinHearsOfTheKeysOfAGetManyToo(t *testing.T) {
	t.Parallel()
	joined := make(chan string, 2)
	g := newGuard(t, shared.Client(t), Config{Prefix: "test-" + rand.Text(), Observers: []Observer{On(EventJoin, func(_ context.Context, e Event) { joined <- e.Key })}})
	began, end := make(chan struct{}), make(chan struct{})
	first := make(chan error, 2)
	go func() {
		_, err := Get(t.Context(), g, "k", func(context.Context) (string, error) {
			close(began)
			<-end
			return "v", nil
		})
		first <- err
	}()
	<-began
	go func() {
		_, err := GetMany(t.Context(), g, []string{"other", "k"}, func(_ context.Context, missing []string) (map[string]string, error) {
			return map[string]string{missing[0]: "v"}, nil
		})
		first <- err
	}()
	expect.Equal(t, "joined", <-joined, "k")
	close(end)
	expect.Equal(t, "error", <-first, nil)
	expect.Equal(t, "error", <-first, nil)
	expect.Equal(t, "others that joined", len(joined), 0)
}
