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
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/semaphore"
)

// A cause is an error of the library that a loader may return, from a call that it makes.
type cause struct {
	err  error
	here string // why it does not reach other instances; empty: it matches there
}

// causes are the errors of this package and of package mutex. The tests below find what is left out.
func causes() map[string]cause {
	const own, within = "callers of this Guard alone have it: a call's arguments, or its receiver", "it is a reason for events and decisions"
	return map[string]cause{
		"cacheguard.ErrNotFound": {ErrNotFound, "it is absence, which travels as such"}, "cacheguard.ErrNotCached": {err: ErrNotCached},
		"cacheguard.ErrClosed": {err: ErrClosed}, "cacheguard.ErrReentrant": {err: ErrReentrant}, "cacheguard.ErrNotReplicated": {err: ErrNotReplicated},
		"mutex.ErrNotAcquired": {err: mutex.ErrNotAcquired}, "mutex.ErrLeaseLost": {err: mutex.ErrLeaseLost}, "mutex.ErrRevoked": {err: mutex.ErrRevoked},
		"mutex.ErrClosed": {err: mutex.ErrClosed}, "mutex.ErrNotReplicated": {err: mutex.ErrNotReplicated},
		"cacheguard.loadTimeout":     {err: &loadTimeout{key: "another", limit: 1}},
		"of a query":                 {err: fmt.Errorf("query: %w", context.DeadlineExceeded)},
		"of another's Done":          {err: &RedisError{Op: "invalidate", Key: "another", Err: context.DeadlineExceeded}},
		"cacheguard.travellingClass": {err: travellingClass(ClassFailed), here: "it is what travels"},
		"cacheguard.calledError":     {err: notCalled(errNoKeys)},
		"cacheguard.RedisError":      {err: &RedisError{Op: "get", Key: "another", Err: context.DeadlineExceeded}},
		"cacheguard.KeyError":        {err: &KeyError{Key: "another", Err: ErrReentrant}},
		"cacheguard.LoadError":       {err: &LoadError{Key: "another", matched: []error{ErrReentrant}}},
		"cacheguard.PanicError":      {&PanicError{Key: "another", Value: "it is broken"}, "a text that was panicked with matches nothing"},

		"cacheguard.errNoSpareSlot": {errNoSpareSlot, "the instances that wait load"}, "cacheguard.errGoexit": {errGoexit, "it is the value of a *PanicError"},
		"cacheguard.errNilGuard": {errNilGuard, own}, "cacheguard.errNilCache": {errNilCache, own}, "cacheguard.errNilIntent": {errNilIntent, own},
		"cacheguard.errEmptyKey": {errEmptyKey, own}, "cacheguard.errNoKeys": {errNoKeys, own}, "cacheguard.errNoUpdate": {errNoUpdate, own},
		"cacheguard.errWarmWithin": {errWarmWithin, own}, "mutex.errNoNames": {nil, own}, "mutex.errUnasked": {nil, "no server has been asked yet"},
		"cacheguard.errRejected": {errRejected, within}, "cacheguard.errNoHedge": {errNoHedge, within}, "cacheguard.errBypassed": {errBypassed, within},
		"cacheguard.errLate":     {errLate, within},
		"cacheguard.errOfNoKind": {errOfNoKind, within}, "cacheguard.errOfAKind": {errOfAKind, within},
	}
}

// declared are the package's errors: variables whose names begin with err or Err, and types with a method Error.
func declared(t *testing.T, pkg, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	expect.ErrorIs(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		expect.ErrorIs(t, err)
		for _, d := range parsed.Decls {
			for _, name := range errorsOf(d) {
				names = append(names, pkg+"."+name)
			}
		}
	}
	return names
}

func errorsOf(d ast.Decl) (names []string) {
	if f, is := d.(*ast.FuncDecl); is && f.Recv != nil && f.Name.Name == "Error" {
		of := f.Recv.List[0].Type
		if pointer, is := of.(*ast.StarExpr); is {
			of = pointer.X
		}
		return []string{of.(*ast.Ident).Name}
	}
	g, is := d.(*ast.GenDecl)
	if !is || g.Tok != token.VAR {
		return nil
	}
	for _, s := range g.Specs {
		for _, name := range s.(*ast.ValueSpec).Names {
			if strings.HasPrefix(strings.ToLower(name.Name), "err") {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

func TestEveryErrorOfTheLibraryTravelsOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	all := causes()
	for _, name := range append(declared(t, "cacheguard", "."), declared(t, "mutex", "../mutex")...) {
		if _, known := all[name]; !known {
			t.Errorf("%s: does it match on other instances, when a loader returns it?", name)
		}
		delete(all, name)
	}
	for _, name := range []string{"of a query", "of another's Done", "of another Cache", "cacheguard.calledError"} {
		delete(all, name) // no types of errors, or one that only wraps
	}
	expect.Equal(t, "errors that there are not", fmt.Sprint(all), "map[]")
}

// An error that matches where it was loaded matches for the waiters of another instance.
func TestEveryCauseOfTheLibraryMatchesOnEveryInstance(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{}).listening()
	for name, c := range causes() {
		if c.here != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			db := newSource("")
			first := async(f.guards[0], name, func(ctx context.Context) (string, error) {
				return "", fmt.Errorf("row: %w", errors.Join(expect.Err(db.load(ctx)), c.err))
			})
			ofLoader := ClassOf(c.err)
			<-db.begun
			second := async(f.guards[1], name, returns("own"))
			f.awaitRegistered(name, 1)
			close(db.release)
			here := (<-first).err
			expect.ErrorIs(t, here, c.err)
			expect.Equal(t, "class here", ClassOf(here), ofLoader)
			err := (<-second).err
			expect.Equal(t, "class there", ClassOf(err), ofLoader)
			expect.Equal(t, "Written", Written(err), false)
			if !errors.As(err, new(*LoadError)) {
				t.Error(err)
			}
			for _, own := range ownCauses {
				is := errors.Is(c.err, own)
				if class, ok := own.(travellingClass); ok { //nolint:errorlint // itself
					is = class.Names(c.err)
				}
				expect.Equal(t, "matches "+own.Error(), errors.Is(err, own), is)
			}
		})
	}
	for _, own := range ownCauses {
		tried := false
		for _, c := range causes() {
			class, is := own.(travellingClass) //nolint:errorlint // itself
			tried = tried || c.here == "" && (errors.Is(c.err, own) || is && class.Names(c.err))
		}
		expect.Equal(t, own.Error(), tried, true)
	}
}

// A Limiter that is closed gives no permits, whose Guard is not: the load does not run there, and those who wait elsewhere load.
func TestALoadThatFindsItsLimiterClosedFailsThereAlone(t *testing.T) {
	t.Parallel()
	many := func(g *Guard) error {
		_, err := GetMany(context.Background(), g, []string{"k", "beside"}, func(context.Context, []string) (map[string]string, error) {
			return nil, errors.New("loaded")
		})
		return err
	}
	type example struct {
		ask                 func(g *Guard) error
		bypassed, slow, led bool
	}
	expect.Each(t, map[string]example{
		"Get":            {ask: func(g *Guard) error { _, err := Get(context.Background(), g, "k", returns("x")); return err }, led: true},
		"Get, slow":      {ask: func(g *Guard) error { _, err := Get(context.Background(), g, "k", returns("x")); return err }, slow: true, led: true},
		"Get, bypassed":  {ask: func(g *Guard) error { _, err := Get(context.Background(), g, "k", returns("x")); return err }, bypassed: true},
		"GetMany":        {ask: many},
		"GetMany, alone": {ask: many, bypassed: true},
	}, func(t *testing.T, _ string, c example) {
		f := newFleet(t, standalone(t), 3, Config{Limiter: permitsOf(1)}).listening()
		g, db := f.guards[0], newSource("v")
		busy := async(f.guards[1], "busy", db.load)
		<-db.begun
		g.Bypass(c.bypassed)
		if c.slow {
			g.counts.slowParts.Store(1)
		}
		failed := make(chan error, 1)
		go func() { failed <- c.ask(g) }() // owner: the test; ends with the call; joined by receiving
		redistest.Await(t, "it waits", func() bool { return g.Stats().Of("limiter_queued") == 1 })
		waits := async(f.guards[2], "k", returns("own"))
		if c.led {
			f.awaitRegistered("k", 1)
		}
		_ = g.cfg.Limiter.(*semaphore.Limiter).Close() // always nil
		expect.ErrorIs(t, <-failed, errNoSpareSlot)
		close(db.release)
		want(t, busy, "v")
		want(t, waits, "own")
	})
}

// everything is all that Redis has under the fleet's prefix, as text.
func (f *fleet) everything() string {
	var all strings.Builder
	for _, key := range f.redis.Keys(context.Background(), f.guards[0].cfg.Prefix+":*").Val() {
		all.WriteString(key + " " + f.redis.Dump(context.Background(), key).Val() + "\n")
	}
	return all.String()
}

// The count of failures stays, so that a database that is down is asked more and more rarely.
func TestTheTextOfAFailureIsInRedisForAsLongAsItCounts(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	fail := func(context.Context) (string, error) { return "", errors.New("user=root password=hunter2") }
	fails := func(i int) *LoadError {
		_, err := Get(t.Context(), f.guards[i], "k", fail)
		var failed *LoadError
		_ = errors.As(err, &failed)
		return failed
	}
	redistest.Await(t, "a failure is shared while it counts", func() bool {
		_ = fails(0) // which of the two loads does not matter
		failed := fails(1)
		return failed != nil && strings.Contains(failed.Message, "hunter2") && strings.Contains(f.everything(), "hunter2")
	})
	redistest.Await(t, "it does not count any more", func() bool { return mustInspect(t, f.guards[0], "k").Failure.Left == 0 })
	if left := f.left(f.lease("k") + ":error"); left > time.Millisecond {
		t.Errorf("the text is there for another %v", left)
	}
	redistest.Await(t, "the text is gone", func() bool { return !strings.Contains(f.everything(), "hunter2") })
	if failure := mustInspect(t, f.guards[0], "k").Failure; failure == nil || failure.InARow == 0 || failure.Message != "" {
		t.Errorf("%+v, want the count without the text", failure)
	}
}

func TestRedactErrorSaysWhatOthersGetOfAnError(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(error) string{
		"it redacts": func(error) string { return "load failed" },
		"it panics":  func(err error) string { panic(err) },
	}, func(t *testing.T, _ string, redact func(error) string) {
		f := newFleet(t, standalone(t), 2, Config{RedactError: redact})
		secret := errors.New("password=hunter2")
		for _, fail := range []func(context.Context) (string, error){
			func(context.Context) (string, error) { return "", secret },
			func(context.Context) (string, error) { panic(secret) },
		} {
			tries := 0 // each with a key of its own: a failure that counts for longer and longer may be either instance's
			redistest.Await(t, "the other instance gets the failure", func() bool {
				tries++
				key := fmt.Sprint("k", tries)
				_, own := Get(t.Context(), f.guards[0], key, fail)
				f.stored() // Redis has the failure
				counts := prolongFailure(f.redis, f.lease(key))
				if there := f.everything(); strings.Contains(there, "hunter2") {
					t.Fatalf("the text is in Redis: %q", there)
				}
				_, others := Get(t.Context(), f.guards[1], key, fail)
				var failed *LoadError
				is := errors.As(others, &failed)
				return counts && strings.Contains(own.Error(), "hunter2") && is && failed.Message == "load failed"
			})
		}
	})
}

func TestAFailureOfAnEarlierVersionOfTheLibraryIsShared(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	mustGet(t, f.guards[0], "other", returns("v")) // a round trip
	now := f.redis.Time(t.Context()).Val().UnixMilli()
	f.redis.HSet(t.Context(), f.lease("k"), "deadline", now+60_000, "length", 60_000, "failed", "token", "error", "from before", "failures", 1)
	_, err := Get(t.Context(), f.guards[0], "k", unwanted[string](t))
	var failed *LoadError
	_ = errors.As(err, &failed)
	expect.Equal(t, "message", failed.Message, "from before")
}

// Under an eviction policy Redis may lose the text alone. An error without a text helps nobody.
func TestAFailureWhoseTextIsLostIsForgotten(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	mustGet(t, f.guards[0], "other", returns("v")) // a round trip
	now := f.redis.Time(t.Context()).Val().UnixMilli()
	f.redis.HSet(t.Context(), f.lease("k"), "deadline", now+60_000, "length", 60_000, "failed", "token", "failures", 1)
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("v")), "v")
}
