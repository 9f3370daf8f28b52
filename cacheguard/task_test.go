package cacheguard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen tasks
			f := newFleet(t, standalone(t), 2, Config{})
			for i, g := range f.guards {
				g.cfg.Hooks.Begin = seen.begin
				if i == 0 {
					g.cfg.Hooks.Origin = func(context.Context) string { return test.origin }
				}
			}
			f.listening()
			began, mayEnd := make(chan struct{}), make(chan struct{})
			done := make(chan error, 2)
			go func() { // owner: the test; stop: mayEnd; joined by done
				_, err := Get(t.Context(), f.guards[0], "k", func(context.Context) (int, error) {
					close(began)
					<-mayEnd
					return 1, nil
				})
				done <- err
			}()
			<-began
			expect.Equal(t, "encoding of the lease", f.redis.ObjectEncoding(t.Context(), f.lease("k")).Val(), "listpack")
			go func() { // owner: the test; stop: mayEnd; joined by done
				_, err := Get(t.Context(), f.guards[1], "k", func(context.Context) (int, error) { return 2, nil })
				done <- err
			}()
			f.awaitRegistered("k", 1)
			close(mayEnd)
			expect.ErrorIs(t, errors.Join(<-done, <-done), nil)
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
	began, mayEnd, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // owner: the test; stop: mayEnd; joined by done
		_, err := Get(t.Context(), f.guards[0], "k", func(context.Context) (int, error) {
			close(began)
			<-mayEnd
			return 1, nil
		})
		done <- err
	}()
	<-began
	v, err := Get(t.Context(), f.guards[1], "k", func(context.Context) (int, error) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		expect.Equal(t, "waits that ended before the load", len(seen.ended[TaskWait]), 1)
		return 2, nil
	})
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "value", v, 2)
	close(mayEnd)
	expect.ErrorIs(t, <-done, nil)
}
