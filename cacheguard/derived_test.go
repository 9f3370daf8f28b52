package cacheguard

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// derived are values of a Cache that replaces, and others that are made of them.
type derived struct {
	f      *fleet
	db     *source
	things []*Cache[int, string]
	views  []*Cache[int, string]
	made   atomic.Int64 // views
}

func newDerived(t *testing.T, viewsReplace time.Duration) *derived {
	t.Helper()
	f, db, things := replacingFleet(t, 2, Config{})
	d := &derived{f: f, db: db, things: things}
	for i, g := range f.guards {
		d.views = append(d.views, must(NewCache(g, CacheConfig[int, string]{
			Name: "view", Replace: viewsReplace, Load: func(ctx context.Context, k int) (string, error) {
				d.made.Add(1)
				SetTags(ctx, "views")
				thing, err := things[i].Get(ctx, k)
				return "of the " + thing, err
			},
		})))
		hit(t, things[i], 1, "old")
		v, err := d.views[i].Get(t.Context(), 1)
		expect.Equal(t, "the view", v, "of the old")
		expect.Equal(t, "its error", err, nil)
	}
	return d
}

// Others get the old value until a write has returned, and make views of it meanwhile: so what the write names beside it ends once more.
func TestWhatIsMadeOfAnOldValueWhileThatIsReplacedEndsWithTheWrite(t *testing.T) {
	t.Parallel()
	done := func(d *derived, c Changes) error {
		in, err := d.f.guards[0].Intend(context.Background(), c)
		return errors.Join(err, in.Done(context.Background()))
	}
	for name, c := range map[string]struct {
		viewsReplace time.Duration
		write        func(d *derived, thing, view string) error
	}{
		"Done of a key and a tag": {off, func(d *derived, thing, _ string) error {
			return done(d, Changes{Keys: []string{thing}, Tags: []string{"views"}})
		}},
		"Done of two keys": {off, func(d *derived, thing, view string) error {
			return done(d, Changes{Keys: []string{thing, view}})
		}},
		"Done of two keys that are replaced": {time.Hour, func(d *derived, thing, view string) error {
			return done(d, Changes{Keys: []string{thing, view}})
		}},
		"Invalidate of two keys": {off, func(d *derived, thing, view string) error {
			return d.f.guards[0].Invalidate(context.Background(), view, thing)
		}},
		"Invalidate of two keys that are replaced": {time.Hour, func(d *derived, thing, view string) error {
			return d.f.guards[0].Invalidate(context.Background(), view, thing)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDerived(t, c.viewsReplace)
			written := make(chan error, 1)
			go func() { written <- c.write(d, d.things[0].Key(1), d.views[0].Key(1)) }() // owner: the test; joined below
			<-d.db.begun
			v, err := d.views[1].Get(t.Context(), 1)
			expect.Equal(t, "the view meanwhile", v, "of the old")
			expect.Equal(t, "its error", err, nil)
			d.db.release <- struct{}{}
			expect.Equal(t, "the write's error", <-written, nil)
			for i := range d.views {
				v, err := d.views[i].Get(t.Context(), 1)
				expect.Equal(t, "the view", v, "of the new")
				expect.Equal(t, "its error", err, nil)
			}
		})
	}
}

// A load in the place of what a write names may ask for what the write updates, and would wait for the end of that.
func TestWhatAWriteNamesBesideItsKeyIsNotReplacedBeforeTheUpdateHasEnded(t *testing.T) {
	t.Parallel()
	also := func(d *derived) func(context.Context) error {
		return func(ctx context.Context) error { return Also(ctx, d.views[0].Changes(1)) }
	}
	for name, write := range map[string]func(d *derived) error{
		"Update": func(d *derived) error { return d.f.guards[0].Update(context.Background(), d.things[0].Key(1), also(d)) },
		"Put": func(d *derived) error {
			return d.things[0].Put(context.Background(), 1, func(ctx context.Context) (string, error) { return "new", also(d)(ctx) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDerived(t, time.Hour)
			close(d.db.release)
			before := d.made.Load()
			expect.Equal(t, "error", write(d), nil)
			expect.Equal(t, "loads of a view meanwhile", d.made.Load(), before)
			v, err := d.views[1].Get(t.Context(), 1)
			expect.Equal(t, "the view", v, "of the new")
			expect.Equal(t, "its error", err, nil)
		})
	}
}

// What a tier has may be old for MaxLag. What a loader makes of it would be old for a TTL.
func TestALoaderGetsNothingFromATier(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{Local: LocalConfig{MaxEntries: 100, TTL: time.Hour}}).listening()
	g := f.guards[0]
	mustGet(t, g, "k", returns("v"))
	how := func(ctx context.Context) (how Outcome) {
		_, how, err := get(ctx, g, "k", returns("v"))
		expect.Equal(t, "error", err, nil)
		return how
	}
	redistest.Await(t, "the tier has it", func() bool { return how(t.Context()) == Local })
	mustGet(t, g, "of k", func(ctx context.Context) (string, error) {
		expect.Equal(t, "a Get's outcome", how(ctx), Hit)
		_, err := GetMany(ctx, g, []string{"k"}, func(context.Context, []string) (map[string]string, error) { return nil, errors.New("loaded") })
		expect.Equal(t, "GetMany's error", err, nil)
		return "made", nil
	})
	_, err := GetMany(t.Context(), g, []string{"l"}, func(ctx context.Context, _ []string) (map[string]string, error) {
		expect.Equal(t, "a Get's outcome in LoadMany", how(ctx), Hit)
		return map[string]string{"l": "made"}, nil
	})
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "outside", how(t.Context()), Local)
}
