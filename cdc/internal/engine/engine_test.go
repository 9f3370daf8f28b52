package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/observe"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func newGuard(t *testing.T, rdb *redis.Client) (*cacheguard.Guard, *cacheguard.Cache[string, string]) {
	t.Helper()
	guard, err := cacheguard.New(rdb, cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: fmt.Sprintf("%s%p", t.Name(), rdb)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	cache, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[string, string]{
		Name: "kind", Load: func(context.Context, string) (string, error) { return "", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return guard, cache
}

func newEngine(t *testing.T, guards []*cacheguard.Guard, tables ...cdc.Table) *Engine {
	t.Helper()
	var p config.Problems
	e := &Engine{Tables: Check(&p, tables, guards), Guards: guards, Log: slog.New(slog.DiscardHandler)}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

func nothing(cdc.Change) cacheguard.Changes { return cacheguard.Changes{} }

func TestPartsThatWaitTogetherAreOneAndEachNameIsInItOnce(t *testing.T) {
	t.Parallel()
	q := newQueue[int]()
	for n := range 3 {
		part := &Part[int]{Names: cacheguard.Changes{Keys: []string{"b", "a"}, Tags: []string{"t"}}, Rows: 2, Until: n, Ends: n < 2, Marks: []uint64{uint64(n)}}
		expect.ErrorIs(t, q.put(t.Context(), part))
	}
	part, err := q.take(t.Context())
	expect.ErrorIs(t, err)
	part.Dedupe()
	expect.Equal(t, "keys", fmt.Sprint(part.Names.Keys, part.Names.Tags), "[a b] [t]")
	expect.Equal(t, "rows", part.Rows, 6)
	expect.Equal(t, "the position of the last transaction that has ended", part.Until, 1)
	expect.Equal(t, "marks", len(part.Marks), 3)
}

func TestWhoReadsAheadOfRedisWaits(t *testing.T) {
	t.Parallel()
	q := newQueue[int]()
	large := func() *Part[int] { return &Part[int]{Names: cacheguard.Changes{Keys: make([]string, MaxNames)}} }
	expect.ErrorIs(t, q.put(t.Context(), large()))
	expect.Equal(t, "there is room", q.tryPut(large()), false)
	put := make(chan error)
	go func() { put <- q.put(context.Background(), large()) }() // owner: the test; stop: room; joined below
	_, err := q.take(t.Context())
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, <-put)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	expect.ErrorIs(t, q.put(ctx, large()), why)
}

func TestAPositionIsConfirmedWhenRedisHasAcknowledgedAndNotBefore(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	guard, _ := newGuard(t, proxy.Client(t, redistest.AsksAgain))
	e := newEngine(t, []*cacheguard.Guard{guard}, cdc.Table{Name: "x", Changed: nothing})
	confirmed, settled := make(chan int, 1), make(chan struct{}, 1)
	a := NewApplier(e, Steps[int]{
		Settle:  func(context.Context, []uint64) error { settled <- struct{}{}; return nil },
		Confirm: func(_ context.Context, position int) error { confirmed <- position; return nil },
	})
	why := errors.New("the end")
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }() // owner: the test; stop: cancel; joined below
	proxy.BlackHole(true)
	expect.ErrorIs(t, a.Put(ctx, &Part[int]{Names: cacheguard.Changes{Keys: []string{"k"}}, Marks: []uint64{7}, Rows: 1, Until: 5, Ends: true}))
	<-settled
	redistest.Await(t, "it is a trouble", func() bool { return e.Stats().Err != nil })
	expect.Equal(t, "confirmed", len(confirmed), 0)
	proxy.BlackHole(false)
	proxy.Cut()
	expect.Equal(t, "the position", <-confirmed, 5)
	expect.ErrorIs(t, e.Stats().Err)
	expect.Equal(t, "rows", e.Stats().Rows, 1)
	cancel(why)
	expect.ErrorIs(t, <-done, why)
}

func TestABatchThatRedisDoesNotManageInTimeIsInvalidatedInPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{Log: slog.New(slog.DiscardHandler)}
		a := NewApplier(e, Steps[int]{})
		late := errors.New("no answer in time")
		var keys, tags []string
		a.invalidate = func(_ context.Context, names cacheguard.Changes, whole []*Table) error {
			if len(names.Keys)+len(names.Tags) > 300 {
				return late
			}
			expect.Equal(t, "tables, of the first piece", len(whole), 1-min(len(keys), 1))
			keys, tags = append(keys, names.Keys...), append(tags, names.Tags...)
			return nil
		}
		part := &Part[int]{Until: 7, Ends: true, Whole: []*Table{{}}}
		for n := range 2000 {
			part.Names.Keys = append(part.Names.Keys, fmt.Sprintf("k%04d", n))
		}
		for n := range 100 {
			part.Names.Tags = append(part.Names.Tags, fmt.Sprintf("t%04d", n))
		}
		expect.ErrorIs(t, a.apply(t.Context(), part))
		expect.Equal(t, "keys, each once and in order", len(keys) == 2000 && slices.IsSorted(slices.Compact(keys)), true)
		expect.Equal(t, "tags", len(tags), 100)
		expect.Equal(t, "to be confirmed", <-a.until, 7)
		expect.Equal(t, "invalidations", e.Stats().Invalidations, 2100)
	})
}

// ordered is an engine with products, views of them, and others.
func ordered(t *testing.T) (e *Engine, kinds map[string]cdc.Kind) {
	t.Helper()
	guard, others := newGuard(t, shared.Client(t))
	kinds = map[string]cdc.Kind{"kind": others}
	for _, name := range []string{"product", "view"} {
		cache, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[string, string]{
			Name: name, Load: func(context.Context, string) (string, error) { return "", nil },
		})
		expect.ErrorIs(t, err)
		kinds[name] = cache
	}
	e = newEngine(t, []*cacheguard.Guard{guard}, cdc.Table{Name: "mapped", Changed: nothing, Kinds: []cdc.Kind{kinds["view"], kinds["kind"]}},
		cdc.Table{Name: "any", Changed: nothing})
	e.Order = []cdc.Kind{kinds["product"], kinds["view"]}
	return e, kinds
}

func TestWhatABatchNamesIsInvalidatedInTheOrderOfItsKinds(t *testing.T) {
	t.Parallel()
	e, _ := ordered(t)
	names := cacheguard.Changes{Keys: []string{"kind:1", "lone", "product:1", "product:2", "view:1"}, Tags: []string{"t"}}
	var said []string
	for _, s := range e.steps(names, e.Tables.All()) {
		guards, kinds := wholeOf(s.whole)
		expect.Equal(t, "Guards that are invalidated whole, which cover their kinds", fmt.Sprint(len(guards), len(kinds)), "1 0")
		_, kinds = wholeOf(s.whole[len(s.whole)-1:])
		for _, kind := range kinds {
			s.names.Keys = append(s.names.Keys, kind.Name())
		}
		said = append(said, fmt.Sprint(s.names.Keys, s.names.Tags))
	}
	expect.Equal(t, "steps", fmt.Sprint(said), "[[kind:1 lone product:1 product:2 kind] [t] [view:1 view] [t]]")
	e.Order = nil
	expect.Equal(t, "without an order", fmt.Sprint(len(e.steps(names, nil))), "1")
}

func TestAStepIsInvalidatedWhenTheOneBeforeIsAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{Log: slog.New(slog.DiscardHandler), Order: []cdc.Kind{named{name: "product"}, named{name: "view"}}}
		a := NewApplier(e, Steps[int]{})
		failures := 3
		var got []string
		a.invalidate = func(_ context.Context, names cacheguard.Changes, _ []*Table) error {
			if len(names.Keys) == 0 {
				return nil
			}
			kind, _, _ := strings.Cut(names.Keys[0], ":")
			if failures--; failures > 0 {
				kind += " fails"
			}
			got = append(got, kind)
			if failures > 0 {
				return errors.New("no answer in time")
			}
			return nil
		}
		var part Part[int]
		for n := range 2 * fewest {
			part.Names.Keys = append(part.Names.Keys, fmt.Sprint("view:", n), fmt.Sprint("product:", n))
		}
		expect.ErrorIs(t, a.apply(t.Context(), &part))
		expect.Equal(t, "what was sent", fmt.Sprint(slices.Compact(got)), "[product fails product view]")
	})
}

// named is a kind with another name.
type named struct {
	cdc.Kind
	name string
}

func (n named) Name() string { return n.name }

func TestAnOrderThatSaysNothingIsRefused(t *testing.T) {
	t.Parallel()
	e, kinds := ordered(t)
	_, foreign := newGuard(t, redistest.StartProxy(t, shared.Addr()).Client(t, redistest.AsksAgain))
	for want, order := range map[string][]cdc.Kind{
		"Order: one of its Kinds is nil":                             {kinds["view"], nil},
		"Order: view is there twice":                                 {kinds["view"], kinds["product"], kinds["view"]},
		"Order: kind is a Cache of a Guard that is not among Guards": {foreign},
	} {
		var p config.Problems
		Check(&p, []cdc.Table{{Name: "x", Changed: nothing}}, e.Guards, order...)
		expect.Equal(t, want, p.Err() != nil && strings.Contains(p.Err().Error(), want), true)
	}
}

func TestAClosedGuardEndsIt(t *testing.T) {
	t.Parallel()
	guard, _ := newGuard(t, shared.Client(t))
	e := newEngine(t, []*cacheguard.Guard{guard}, cdc.Table{Name: "x", Changed: nothing})
	expect.ErrorIs(t, guard.Close())
	a := NewApplier(e, Steps[int]{Confirm: func(context.Context, int) error { return nil }})
	expect.ErrorIs(t, a.Put(t.Context(), &Part[int]{Names: cacheguard.Changes{Tags: []string{"t"}}}))
	expect.ErrorIs(t, a.Run(t.Context()), cacheguard.ErrClosed)
}

func TestWholeTablesReachTheirKindsAndTheGuardsWithoutOne(t *testing.T) {
	t.Parallel()
	one, kind := newGuard(t, shared.Client(t))
	two, _ := newGuard(t, shared.Client(t))
	guards := []*cacheguard.Guard{one, two}
	e := newEngine(t, guards, cdc.Table{Name: "mapped", Changed: nothing, Kinds: []cdc.Kind{kind}}, cdc.Table{Name: "other", Changed: nothing})
	all, kinds := wholeOf([]*Table{e.Tables["mapped"]})
	expect.Equal(t, "the Guard without a kind, and the kind", len(all) == 1 && all[0] == two && len(kinds) == 1 && kinds[0] == cdc.Kind(kind), true)
	all, kinds = wholeOf(e.Tables.All())
	expect.Equal(t, "all Guards, and no kind that they cover", slices.Equal(all, []*cacheguard.Guard{two, one}) && len(kinds) == 0, true)
	expect.ErrorIs(t, e.Whole(t.Context(), "a test"))
	expect.Equal(t, "whole", e.Stats().Whole, 1)
}

func TestARowWhoseKeysAreNotKnownIsAnErrorWithItsTable(t *testing.T) {
	t.Parallel()
	guard, _ := newGuard(t, shared.Client(t))
	for name, changed := range map[string]func(cdc.Change) cacheguard.Changes{
		"a panic":   func(cdc.Change) cacheguard.Changes { panic("no") },
		"a column":  func(c cdc.Change) cacheguard.Changes { _, _ = c.New.Int64("id"); return cacheguard.Changes{} },
		"empty key": func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{Keys: []string{"a", ""}} },
		"empty tag": func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{Tags: []string{""}} },
		"a large tag": func(cdc.Change) cacheguard.Changes {
			return cacheguard.Changes{Tags: []string{string(make([]byte, 513))}}
		},
	} {
		e := newEngine(t, []*cacheguard.Guard{guard}, cdc.Table{Name: "public.x", Changed: changed})
		_, err := e.Tables["public.x"].Changes(cdc.Change{Op: cdc.Insert, New: cdc.NewRow(nil, nil)})
		var row *cdc.RowError
		if !errors.As(err, &row) || row.Table != "public.x" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestAReaderThatHasNeverCaughtUpIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e Engine
		e.Log = slog.New(slog.DiscardHandler)
		e.Reading(true, time.Time{})
		time.Sleep(time.Minute)
		expect.Equal(t, "behind", e.Stats().Behind, time.Minute)
		e.Applied(1, 1, 1, 0, time.Now().Add(-time.Hour)) // of the log that it reads now
		expect.Equal(t, "behind", e.Stats().Behind, time.Hour)
	})
}

func TestATroubleIsLoggedWhenItBeginsAndWhenItIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		e := Engine{Log: slog.New(slog.NewTextHandler(&text, nil))}
		refused, late := errors.New("connection refused"), errors.New("no answer")
		for range 10 { // the same trouble, in other words
			e.Trouble(refused)
			e.Trouble(late)
		}
		expect.Equal(t, "lines at the beginning", strings.Count(text.String(), "changes wait"), 1)
		time.Sleep(sayAgain)
		e.Trouble(refused)
		e.Trouble(refused)
		expect.Equal(t, "lines of a trouble that lasts", strings.Count(text.String(), "changes wait"), 2)
		e.Trouble(nil)
		e.Trouble(nil)
		expect.Equal(t, "lines at the end", strings.Count(text.String(), "invalidated again\" lasted=10s"), 1)
		e.Trouble(late)
		expect.Equal(t, "lines of the next trouble", strings.Count(text.String(), "changes wait"), 3)
	})
}

func TestTheLinesOfAFeedSayWhoseTheyAre(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	guard, _ := newGuard(t, shared.Client(t))
	of, _ := observe.Look[observe.Guard](guard)
	Logger(slog.New(slog.NewTextHandler(&text, nil)), []*cacheguard.Guard{guard}).Info("line")
	expect.Says(t, text.String(), "cache="+of.Prefix, "instance="+of.Instance)
}

// Where nobody can invalidate, each instance tries to read in turn, and the others stand by.
func TestATroubleIsNotOverWhileInstancesTakeTurnsAtIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		e := Engine{Log: slog.New(slog.NewTextHandler(&text, nil))}
		for range 5 {
			e.Trouble(errors.New("READONLY"))
			e.StandsBy()
			time.Sleep(sayAgain - time.Second)
			e.StandsBy()
		}
		expect.Equal(t, "lines at the end", strings.Count(text.String(), "invalidated again"), 0)
		expect.Equal(t, "the trouble is known meanwhile", e.Stats().Err != nil, true)
		time.Sleep(time.Second)
		e.StandsBy()
		expect.Equal(t, "lines once another reads", strings.Count(text.String(), "invalidated again"), 1)
		expect.Equal(t, "the trouble after that", e.Stats().Err, nil)
	})
}

func TestBehindIsHowOldAValueCanBe(t *testing.T) {
	t.Parallel()
	guard, _ := newGuard(t, shared.Client(t))
	e := newEngine(t, []*cacheguard.Guard{guard}, cdc.Table{Name: "x", Changed: nothing})
	end, err := e.Start()
	expect.ErrorIs(t, err)
	_, err = e.Start()
	expect.ErrorIs(t, err, errRunning)
	e.Reading(true, time.Now().Add(-time.Hour))
	expect.Equal(t, "an hour behind", e.Stats().Behind >= time.Hour, true)
	e.CaughtUp(time.Now())
	e.CaughtUp(time.Now().Add(-time.Hour)) // it does not go back
	expect.Equal(t, "caught up", e.Stats().Behind < time.Hour, true)
	end()
	expect.Equal(t, "reading", e.Stats().Reading, false)
	expect.Equal(t, "the error of many keys has one line", brief{errors.Join(errRunning, errRunning, errRunning)}.Error(), errRunning.Error()+" (and 2 more)")
}

func TestANameThatOneGuardOfAFeedHasIsUnknownToNone(t *testing.T) {
	t.Parallel()
	products, _ := newGuard(t, shared.Client(t))
	permissions, _ := newGuard(t, shared.Client(t))
	names := cacheguard.Changes{Keys: []string{"product:1", "permission:1", "prodcut:1"}, Tags: []string{"category:1", "owner:1", "onwer:1"}}
	e := newEngine(t, []*cacheguard.Guard{products, permissions}, cdc.Table{Name: "x", Changed: nothing})
	load := func(guard *cacheguard.Guard, key, tag string) {
		_, err := cacheguard.Get(t.Context(), guard, key, func(ctx context.Context) (string, error) {
			cacheguard.SetTags(ctx, tag)
			return "v", nil
		})
		expect.ErrorIs(t, err)
	}
	unknown := func(g *cacheguard.Guard) float64 { return g.Stats().Of("unknown_names") }
	load(products, "product:1", "category:1")
	expect.ErrorIs(t, e.Invalidate(t.Context(), names, nil))
	expect.Equal(t, "while a Guard knows nothing", unknown(products)+unknown(permissions), 0)
	load(permissions, "permission:1", "owner:1")
	for range 2 {
		expect.ErrorIs(t, e.Invalidate(t.Context(), names, nil))
	}
	expect.Equal(t, "mistyped, for both", fmt.Sprint(unknown(products), unknown(permissions)), "4 4")
	expect.ErrorIs(t, products.Invalidate(t.Context(), "permission:1"))
	expect.Equal(t, "without the feed, each Guard judges for itself", unknown(products), 5)
}
