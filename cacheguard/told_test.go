package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/observe"
)

// What is counted or decided is told to all who are told anything: the log, Hooks, package admin.

// failing is how the loads of a Cache fail, as package admin gets it.
func failing(t *testing.T, g *Guard, cache string) observe.Failing {
	t.Helper()
	for _, c := range g.observed().Caches() {
		if c.Name == cache {
			return c.Failing
		}
	}
	t.Fatalf("there is no Cache %q", cache)
	return observe.Failing{}
}

// page is what a Guard reports to package admin, and how often: "damaged of product", "loaded of product, failed".
type page struct {
	mu    sync.Mutex
	told  map[string]int
	loads int // that run
}

// look opens the page.
func look(g *Guard) *page {
	p := &page{told: make(map[string]int)}
	var v observe.Viewer = p
	g.observed().Viewer.Store(&v)
	return p
}

func (p *page) note(of string, loads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[of]++
	p.loads += loads
}

func (p *page) Answered(kind, _, outcome string) { p.note("answer "+outcome+" of "+kind, 0) }
func (p *page) Happened(kind, what string)       { p.note(what+" of "+kind, 0) }

func (p *page) Loading(string, int) (ended func(bool)) {
	p.note("loading", 1)
	return func(failed bool) { p.note(map[bool]string{true: "ended, failed", false: "ended"}[failed], -1) }
}

func (p *page) Loaded(kind string, _ time.Duration, failed bool) {
	p.note("loaded of "+kind+map[bool]string{true: ", failed"}[failed], 0)
}

// times is how often that was told.
func (p *page) times(of string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[of]
}

// all is everything that was told.
func (p *page) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.told)
}

// running is how many loads run.
func (p *page) running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loads
}

// products makes a Cache of the Guard, whose things are loaded so.
func products[V any](t *testing.T, g *Guard, load func(context.Context, int) (V, error)) *Cache[int, V] {
	t.Helper()
	c, err := NewCache(g, CacheConfig[int, V]{Name: "product", Load: load})
	expect.ErrorIs(t, err)
	return c
}

func TestAnEntryOfAnotherTypeIsToldToAll(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.TTL = time.Hour
	f := newFleet(t, standalone(t), 2, cfg)
	old := products(t, f.guards[0], func(context.Context, int) (before, error) { return before{42}, nil })
	changed := products(t, f.guards[1], func(context.Context, int) (after, error) { return after{"42"}, nil })
	shown := look(f.guards[1])
	_, err := old.Get(t.Context(), 1)
	expect.ErrorIs(t, err)
	f.stored()
	v, err := changed.Get(t.Context(), 1)
	expect.ErrorIs(t, err)
	expect.Equal(t, "value", v.Price, "42")
	expect.Equal(t, "log", len(lines(text(), "entry cannot be decoded, it stays")), 1)
	expect.Equal(t, "hooks", f.told().damaged.Load(), 1)
	expect.Equal(t, "page", shown.times("unread of product"), 1)
}

func TestACallWithoutTheCacheOfAnEntryIsToldToAll(t *testing.T) {
	t.Parallel()
	load := func(context.Context) (string, error) { return "v", nil }
	expect.Each(t, map[string]func(*Guard, string) error{
		"Get": func(g *Guard, key string) error { _, err := Get(context.Background(), g, key, load); return err },
		"Fetch": func(g *Guard, key string) error {
			_, _, err := Fetch(context.Background(), g, key, Source[string]{Load: func(ctx context.Context, _ *string) (string, error) { return load(ctx) }})
			return err
		},
		"GetMany": func(g *Guard, key string) error {
			_, err := GetMany(context.Background(), g, []string{key}, func(context.Context, []string) (map[string]string, error) {
				return map[string]string{key: "v"}, nil
			})
			return err
		},
	}, func(t *testing.T, _ string, call func(*Guard, string) error) {
		cfg, text := logged()
		f := newFleet(t, standalone(t), 1, cfg)
		g := f.guards[0]
		c := products(t, g, func(context.Context, int) (string, error) { return "v", nil })
		shown := look(g)
		_, err := c.Get(t.Context(), 1)
		expect.ErrorIs(t, err)
		f.stored()
		for range 3 {
			expect.ErrorIs(t, call(g, c.Key(1)))
		}
		expect.Equal(t, "log", len(lines(text(), "entry belongs to a Cache, whose methods read it")), 1)
		expect.Says(t, lines(text(), "entry belongs to a Cache")[0], "level=WARN", "key=product:1")
		expect.Equal(t, "loads", f.events.loads.Load(), 1+3)
		expect.Equal(t, "hooks", f.told().damaged.Load(), 3)
		expect.Equal(t, "page", shown.times("alien of product"), 3)
	})
}

func TestACacheThatFindsWhatACallWithoutItStoredSaysSo(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	f := newFleet(t, standalone(t), 1, cfg)
	g := f.guards[0]
	c := products(t, g, func(context.Context, int) (string, error) { return "v", nil })
	shown := look(g)
	mustGet(t, g, c.Key(1), returns("v"))
	f.stored()
	_, err := c.Get(t.Context(), 1)
	expect.ErrorIs(t, err)
	expect.Says(t, lines(text(), "entry cannot be decoded")[0], "kind=product", "stored by Get, Fetch or GetMany of the Guard")
	expect.Equal(t, "page", shown.times("unread of product"), 1)
}

func TestLoadsThatFailAreToldUntilTheyDoNot(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.RedactError = func(error) string { return "redacted" }
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	failure := errors.New("relation products is locked")
	c := products(t, g, func(context.Context, int) (string, error) { return "v", failure })
	k := 0
	get := func() {
		k++
		_, err := c.Get(t.Context(), k)
		expect.ErrorIs(t, err, failure)
	}
	for len(lines(text(), "loads fail")) == 0 { // a second time if the machine stood still meanwhile
		get()
		get()
		since := time.Now()
		redistest.Await(t, "it has lasted", func() bool { return time.Since(since) > time.Second })
		get()
	}
	expect.Says(t, lines(text(), "loads fail")[0], "level=WARN", "kind=product", "failed=", "loads=", `error="relation products is locked"`)
	now := failing(t, g, "product")
	expect.Equal(t, "for a while", now.For > 0, true)
	expect.Equal(t, "all of them", now.Failed, now.Loads)
	expect.Equal(t, "the last", now.Last, "redacted")
	expect.Equal(t, "of other keys", failing(t, g, "").Loads, 0)
	failure = nil
	redistest.Await(t, "so is its end", func() bool {
		get()
		return len(lines(text(), "few loads fail, or none")) == 1
	})
	expect.Says(t, lines(text(), "few loads fail, or none")[0], "lasted=", "loads=", "failed=", "kind=product")
	expect.Equal(t, "for, in the end", failing(t, g, "product").For, 0)
}

func TestAbsenceAndWhatNobodyWaitsForAreNoFailuresOfTheSource(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	_, err := Get(t.Context(), g, "absent", func(context.Context) (string, error) { return "", fmt.Errorf("no row: %w", ErrNotFound) })
	expect.ErrorIs(t, err, ErrNotFound)
	for i, failure := range []error{context.Canceled, errors.New("canceling statement due to user request")} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		_, err := Get(ctx, g, fmt.Sprint("left", i), func(within context.Context) (string, error) {
			defer close(ended)
			cancel()
			<-within.Done()
			return "", failure
		})
		expect.ErrorIs(t, err, context.Canceled)
		<-ended
		redistest.Await(t, "the load is over", func() bool { return g.Stats().Loading == 0 })
	}
	expect.Fails(t, expect.Err(Get(t.Context(), g, "panics", func(context.Context) (string, error) { panic("oops") })))
	now := failing(t, g, "")
	expect.Equal(t, "loads", now.Loads, 1+1)
	expect.Equal(t, "failed", now.Failed, 1)
}

func TestAFailureOfAnotherInstanceIsOneOfTheLoads(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	fails := func(context.Context) (string, error) { return "", errors.New("no such table") }
	k := 0
	redistest.Await(t, "the second instance has it from the first", func() bool { // which remembers it for a moment
		k++
		_, _ = Get(t.Context(), f.guards[0], fmt.Sprint(k), fails)
		_, err := Get(t.Context(), f.guards[1], fmt.Sprint(k), returns("v"))
		return errors.As(err, new(*LoadError))
	})
	now := failing(t, f.guards[1], "")
	expect.Equal(t, "failed", now.Failed, 1)
	expect.Equal(t, "the last", now.Last, "no such table")
}

func TestAFailureThatIsPushedToAnInstanceIsOneOfTheLoads(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{}).listening()
	db := newSource("")
	first := async(f.guards[0], "k", func(ctx context.Context) (string, error) {
		_, _ = db.load(ctx)
		return "", errors.New("no such table")
	})
	<-db.begun
	second := async(f.guards[1], "k", returns("v"))
	f.awaitRegistered("k", 1)
	close(db.release)
	<-first
	<-second
	now := failing(t, f.guards[1], "")
	expect.Equal(t, "failed", now.Failed, 1)
	expect.Equal(t, "the last", now.Last, "no such table")
}

func TestEachCallThatFailsIsAnAnswer(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	shown := look(g)
	expect.Fails(t, expect.Err(Get(t.Context(), g, "k", func(context.Context) (string, error) { return "", errors.New("no such table") })))
	expect.Equal(t, "answers: "+shown.all(), strings.Count(shown.all(), "answer"), 1)
	expect.Equal(t, "errors", shown.times("answer error of "), 1)
}

// A call of the Logger alone leaves the others out: only observer.go may, which knows all of them.
func TestNobodyTellsOnlyOneOfThoseWhoAreToldOfAnEvent(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	expect.ErrorIs(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "observer.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		expect.ErrorIs(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			for _, way := range []string{"journal.Observe", "Logger"} {
				if strings.Contains("."+callee(call)+".", "."+way+".") {
					t.Errorf("%s: %s: use Guard.tell", name, way)
				}
			}
			return true
		})
	}
}

// callee is what a call calls, as far as it is names with dots.
func callee(call *ast.CallExpr) (path string) {
	for at := call.Fun; ; {
		selector, is := at.(*ast.SelectorExpr)
		if !is {
			if ident, is := at.(*ast.Ident); is {
				path = ident.Name + "." + path
			}
			return strings.TrimSuffix(path, ".")
		}
		path, at = selector.Sel.Name+"."+path, selector.X
	}
}
