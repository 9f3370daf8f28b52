package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// stuck is a database whose first query hangs, whatever its context says.
type stuck struct {
	loads atomic.Int64
	begun chan struct{}
	hang  chan struct{}
}

func newStuck() *stuck { return &stuck{begun: make(chan struct{}), hang: make(chan struct{})} }

func (s *stuck) load(context.Context) (string, error) {
	if s.loads.Add(1) == 1 {
		close(s.begun)
		<-s.hang
		return "old", nil
	}
	return "new", nil
}

func (s *stuck) loadMany(ctx context.Context, keys []string) (map[string]string, error) {
	all := make(map[string]string)
	for _, key := range keys {
		if all[key] = "other"; key == "k" {
			all[key], _ = s.load(ctx)
		}
	}
	return all, nil
}

// A key has one loader in an instance: who comes while one hangs that others have left waits for it, takes no slot, and loads then.
func TestCallersWhoGiveUpOnAKeyOneAfterTheOtherRunOneLoader(t *testing.T) {
	t.Parallel()
	type ask = func(ctx context.Context, g *Guard, db *stuck) (string, error)
	get := func(ctx context.Context, g *Guard, db *stuck) (string, error) { return Get(ctx, g, "k", db.load) }
	fetch := func(ctx context.Context, g *Guard, db *stuck) (string, error) {
		v, _, err := Fetch(ctx, g, "k", Source[string]{Load: func(ctx context.Context, _ *string) (string, error) { return db.load(ctx) }})
		return v, err
	}
	many := func(ctx context.Context, g *Guard, db *stuck) (string, error) {
		all, err := GetMany(ctx, g, []string{"k", "beside"}, db.loadMany)
		return all["k"], err
	}
	transaction := func(ctx context.Context, g *Guard, db *stuck) (v string, err error) {
		return v, g.Update(ctx, "another", func(ctx context.Context) error {
			v, err = Get(ctx, g, "k", db.load)
			return err
		})
	}
	for name, c := range map[string]struct {
		first, later ask
		bypassed     bool
	}{
		"Get": {first: get, later: get}, "Fetch": {first: fetch, later: fetch}, "GetMany": {first: many, later: many},
		"GetMany after Get": {first: get, later: many}, "Get after GetMany": {first: many, later: get},
		"without Redis": {first: get, later: get, bypassed: true}, "GetMany without Redis": {first: many, later: many, bypassed: true},
		"in transactions": {first: transaction, later: transaction},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newFleet(t, standalone(t), 1, Config{MaxLoads: 3, NegativeTTL: off}).guards[0]
			if c.bypassed {
				g.Bypass(true)
			}
			db := newStuck()
			ctx, leave := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() {
				_, err := c.first(ctx, g, db)
				first <- err
			}()
			<-db.begun
			leave()
			expect.ErrorIs(t, <-first, context.Canceled)
			for range 8 {
				ctx, leave := context.WithTimeout(t.Context(), 20*time.Millisecond)
				_, err := c.later(ctx, g, db)
				expect.ErrorIs(t, err, context.DeadlineExceeded)
				leave()
			}
			expect.Equal(t, "loads while one hangs", db.loads.Load(), 1)
			for i := range 5 {
				key := fmt.Sprint("other", i)
				expect.Equal(t, key, mustGet(t, g, key, returns("v")), "v")
			}
			waits := make(chan reply[string], 1)
			go func() {
				v, err := c.later(context.WithoutCancel(t.Context()), g, db)
				waits <- reply[string]{v, err}
			}()
			mustInvalidate(t, g, "k")
			close(db.hang)
			want(t, waits, "new")
			expect.Equal(t, "loads", db.loads.Load(), 2)
		})
	}
}

func TestWhoComesWhileALoadOutlivesItsTimeoutWaitsAsLongAndFails(t *testing.T) {
	t.Parallel()
	for name, many := range map[string]bool{"Get": false, "GetMany": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newFleet(t, standalone(t), 1, Config{LoadTimeout: brisk}).guards[0]
			db := newStuck()
			ask := func() error {
				if many {
					_, err := GetMany(t.Context(), g, []string{"k", "beside"}, db.loadMany)
					return err
				}
				_, err := Get(t.Context(), g, "k", db.load)
				return err
			}
			for range 2 {
				expect.ErrorIs(t, ask(), context.DeadlineExceeded)
				redistest.Await(t, "the failure is forgotten", func() bool {
					n, err := g.rdb.(client).Exists(t.Context(), g.keys.ValueKey("k")+":lease:error").Result()
					return err == nil && n == 0
				})
			}
			expect.Equal(t, "loads", db.loads.Load(), 1)
			close(db.hang)
			redistest.Await(t, "it is loaded again", func() bool { return ask() == nil })
			expect.Equal(t, "loads", db.loads.Load(), 2)
		})
	}
}

// What is not stored is for those who began before it was there. The epoch of a new tag is made between the answer and the store.
func TestAGetThatBeginsAfterALoadHasReturnedSharesItOnlyIfItIsStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg    Config
		absent bool
		loads  int64
	}{
		"TTL -1": {cfg: Config{TTL: off}, loads: 2}, "NegativeTTL -1": {cfg: Config{NegativeTTL: off}, absent: true, loads: 2}, "stored": {loads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, proxy := broken(t, shared, c.cfg)
			g := f.guards[0]
			warm(t, f)
			var loads atomic.Int64
			load := func(ctx context.Context) (int64, error) {
				SetTags(ctx, "new")
				if c.absent {
					return loads.Add(1), ErrNotFound
				}
				return loads.Add(1), nil
			}
			held := proxy.On(scriptOf("make"), redistest.Hold).Times(1)
			v, err := Get(t.Context(), g, "k", load)
			expect.Equal(t, "first", v == 1 && err == nil, !c.absent)
			<-held.Hit()
			second := async(g, "k", load)
			awaitCallers[int64](f, 0, "k", 1)
			held.Release()
			r := <-second
			expect.Equal(t, "absent", errors.Is(r.err, ErrNotFound), c.absent)
			expect.Equal(t, "loads", loads.Load(), c.loads)
		})
	}
}

// A load in the background is old once the key has been invalidated: nobody is to wait for it, so for a while the key has two loaders.
func TestAGetDoesNotWaitForALoadInTheBackgroundThatWasInvalidated(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{TTL: brisk, StaleFor: time.Hour})
	g, db := f.guards[0], newSource("old")
	mustGet(t, g, "k", returns("old"))
	redistest.Await(t, "it is refreshed", func() bool {
		expect.Equal(t, "value", mustGet(t, g, "k", db.load), "old")
		return db.loads.Load() == 1
	})
	<-db.begun
	mustInvalidate(t, g, "k")
	want(t, async(g, "k", returns("new")), "new")
	close(db.release)
	expect.Equal(t, "value", mustGet(t, g, "k", returns("new")), "new")
}
