package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

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
	expectIn(t, lines(text(), "an Observer panicked")[0], "level=ERROR", "ObserverFunc", "panic=observer", "event=takeover")
	expect.Equal(t, "Get", mustGet(t, g, "k", returns("v")), "v")
}

func TestNewRefusesAnObserverThatIsNil(t *testing.T) {
	t.Parallel()
	_, err := New(shared.Client(t), Config{Observers: []Observer{nil}})
	if err == nil || !strings.Contains(err.Error(), "Config.Observers") {
		t.Error(err)
	}
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
	_, err = c.Get(t.Context(), 1)
	if err == nil {
		t.Error("no error")
	}
	expect.Equal(t, "cache", told[EventCache], "thing ")
	expect.Equal(t, "load", told[EventLoad], "thing thing:1")
	expect.Equal(t, "get", told[EventGet], "thing thing:1")
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
	for range mostHeard + 1 {
		g.onHeard(tier.Notice{Key: "k"})
	}
	g.onHeard(tier.Notice{Key: "last"})
	close(release)
	<-ended
	expect.Equal(t, "told", len(told), 3)
	expect.Equal(t, "keys", fmt.Sprintf("%q %q %q", told[0].Key, told[1].Key, told[2].Key), `"first" "" "last"`)
	g.onHeard(tier.Notice{Key: epoch.OfKind("product"), Many: true})
	redistest.Await(t, "nobody tells", func() bool {
		g.observers.heard.mu.Lock()
		defer g.observers.heard.mu.Unlock()
		return !g.observers.heard.telling
	})
	expect.Equal(t, "of a Cache", told[3].Kind, "product")
}
