package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

// row is a database with one row.
type row struct {
	value atomic.Value
	then  func() // is called when it has been written; nil: nothing is
}

func newRow(value string) *row {
	r := new(row)
	r.value.Store(value)
	return r
}

func (r *row) load(context.Context) (string, error) { return r.value.Load().(string), nil }

func (r *row) write(value string) func(context.Context) error {
	return func(context.Context) error {
		r.value.Store(value)
		if r.then != nil {
			r.then()
		}
		return nil
	}
}

func (f *fleet) intent(key string) string { return protocol.IntentKey(f.value(key)) }

// expectUntouched checks that an update has left nothing behind but its effect.
func (f *fleet) expectUntouched(key string, want string, r *row) {
	f.t.Helper()
	expect.Equal(f.t, "intent", f.exists(f.intent(key)), false)
	for i, g := range f.guards {
		expect.Equal(f.t, fmt.Sprint("value at ", i), mustGet(f.t, g, key, r.load), want)
	}
	expect.Equal(f.t, "stored", f.exists(f.value(key)), true)
}

// begins repeats what writes under a short lease until its write begins: on a busy machine the lease may be lost before.
func begins(t *testing.T, write func(begin func()) error) (err error) {
	t.Helper()
	for begun := false; !begun && t.Context().Err() == nil; {
		if err = write(func() { begun = true }); !begun && !errors.Is(err, rwlock.ErrLeaseLost) {
			t.Errorf("before the write: %v", err)
			return err
		}
	}
	return err
}

func TestGetAfterAnUpdateReturnsTheNewValueEverywhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	db := newRow("old")
	f.expectUntouched("k", "old", db)
	var fence int64
	err := f.guards[0].Update(context.Background(), "k", func(ctx context.Context) error {
		fence, _ = rwlock.FenceFrom(ctx)
		return db.write("new")(ctx)
	})
	expect.Equal(t, "Update", err, nil)
	expect.Equal(t, "has a fence", fence > 0, true)
	f.expectUntouched("k", "new", db)
}

// writing is an Update whose write waits for the test.
type writing struct {
	began   chan context.Context
	release chan error
	done    chan error
}

func beginUpdate(f *fleet, i int, r *row, value string, keys ...string) *writing {
	w := &writing{make(chan context.Context, 1), make(chan error, 1), make(chan error, 1)}
	go func() {
		w.done <- f.guards[i].UpdateMany(context.Background(), keys, func(ctx context.Context) error {
			w.began <- ctx
			r.value.Store(value)
			return <-w.release
		})
	}()
	return w
}

func TestGetWaitsForTheWriterAndIsWoken(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 3, Config{LeaseTTL: time.Minute}).listening()
	db := newRow("old")
	w := beginUpdate(f, 0, db, "new", "k")
	<-w.began
	early := async(f.guards[1], "k", db.load)
	many := make(chan error, 1)
	go func() {
		values, err := GetMany(context.Background(), f.guards[2], []string{"k", "l"}, openShelf().load)
		if err == nil && values["k"] != "new" && values["k"] != "v:k" { // whichever of the two loads
			err = fmt.Errorf("got %v", values)
		}
		many <- err
	}()
	redistest.Await(t, "two instances are registered", func() bool {
		fields, err := f.redis.HKeys(context.Background(), f.intent("k")).Result()
		return err == nil && len(fields) == 4 // the writer, its instance, and two inboxes
	})
	w.release <- nil
	expect.Equal(t, "Update", <-w.done, nil)
	v := <-early
	expect.Equal(t, "the waiting Get", v.err, nil)
	expect.Equal(t, "GetMany", <-many, nil)
	expect.Equal(t, "loads", f.events.loads.Load() >= 2, true)
}

func TestNobodyStoresWhileAnUpdateIsUnderWay(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{WaitTimeout: 20 * time.Millisecond})
	db := newRow("old")
	slow := newSource("old")
	before := async(f.guards[1], "k", slow.load) // has read the source, and will store
	<-slow.begun
	w := beginUpdate(f, 0, db, "new", "k")
	<-w.began
	slow.release <- struct{}{}
	want(t, before, "old")
	f.stored()
	expect.Equal(t, "rejected", f.events.rejected.Load(), 1)
	expect.Equal(t, "during the update", mustGet(t, f.guards[1], "k", returns("either")), "either")
	expect.Equal(t, "stored", f.exists(f.value("k")), false)
	w.release <- nil
	expect.Equal(t, "Update", <-w.done, nil)
	f.expectUntouched("k", "new", db)
}

func TestUpdatesOfAKeyTakeTurns(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 3, Config{})
	var running, count atomic.Int64
	var last int64
	var all sync.WaitGroup
	for _, g := range f.guards {
		for range 10 {
			all.Go(func() {
				err := g.Update(context.Background(), "k", func(ctx context.Context) error {
					if running.Add(1) > 1 {
						t.Error("two writers at once")
					}
					defer running.Add(-1)
					fence, _ := rwlock.FenceFrom(ctx)
					if fence <= last {
						t.Errorf("fence %d after %d", fence, last)
					}
					last = fence
					count.Add(1)
					return nil
				})
				expect.ErrorIs(t, err)
			})
		}
	}
	all.Wait()
	expect.Equal(t, "writes", count.Load(), 30)
}

func TestUpdateWithinItselfIsRefusedAndItsGetsDoNotWait(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	g, db := f.guards[0], newRow("old")
	err := g.Update(context.Background(), "k", func(ctx context.Context) error {
		expect.ErrorIs(t, g.Update(ctx, "k", db.write("x")), ErrReentrant)
		v, err := Get(ctx, g, "k", db.load)
		expect.Equal(t, "Get", fmt.Sprint(v, err), fmt.Sprint("old", nil))
		values, err := GetMany(ctx, g, []string{"k"}, openShelf().load)
		expect.Equal(t, "GetMany", fmt.Sprint(values, err), "map[k:v:k] <nil>")
		return g.Update(ctx, "other", db.write("new"))
	})
	expect.Equal(t, "Update", err, nil)
	f.expectUntouched("k", "new", db)
}

func TestALoaderThatUpdatesItsOwnKeyStoresNothingOld(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	g, db := f.guards[0], newRow("old")
	v, err := Get(context.Background(), g, "k", func(ctx context.Context) (string, error) {
		old, err := db.load(ctx)
		return old, errors.Join(err, g.Update(ctx, "k", db.write("new")))
	})
	expect.Equal(t, "the loader's caller", v, "old")
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "stored", f.exists(f.value("k")), false)
	f.expectUntouched("k", "new", db)
}

func TestUpdateManyLocksOverlappingSetsWithoutDeadlock(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*testing.T) arena{"standalone": standalone, "cluster": onCluster}, func(t *testing.T, _ string, build func(*testing.T) arena) {
		f := newFleet(t, build(t), 2, Config{})
		db := newRow("0")
		var all sync.WaitGroup
		for i, keys := range [][]string{{"a", "b", "c"}, {"c", "b"}, {"b", "a", "b"}, {"c", "a"}} {
			for range 5 {
				all.Go(func() {
					expect.ErrorIs(t, f.guards[i%2].UpdateMany(context.Background(), keys, db.write("1")))
				})
			}
		}
		all.Wait()
		for _, key := range []string{"a", "b", "c"} {
			f.expectUntouched(key, "1", db)
		}
	})
}

func TestUpdateTakesTwoRoundTrips(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 1, Config{}).listening()
	db := newRow("old")
	update := func() {
		expect.Must(t, f.guards[0].Update(context.Background(), "k", db.write("new")))
	}
	update() // the scripts are known now
	expect.Equal(t, "requests", s.FewestReads(2, update), 2)
}

func TestUpdateReachesLocalTiers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, withLocal)
	db := newRow("old")
	f.keptBy(0, "k", "old")
	f.keptBy(1, "k", "old")
	expect.Equal(t, "Update", f.guards[0].Update(context.Background(), "k", db.write("new")), nil)
	expect.Equal(t, "here", mustGet(t, f.guards[0], "k", db.load), "new")
	f.heard(1)
	expect.Equal(t, "there", mustGet(t, f.guards[1], "k", db.load), "new")
}
