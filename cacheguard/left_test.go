package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

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
	type example struct {
		first, later ask
		bypassed     bool
	}
	expect.Each(t, map[string]example{
		"Get": {first: get, later: get}, "Fetch": {first: fetch, later: fetch}, "GetMany": {first: many, later: many},
		"GetMany after Get": {first: get, later: many}, "Get after GetMany": {first: many, later: get},
		"without Redis": {first: get, later: get, bypassed: true}, "GetMany without Redis": {first: many, later: many, bypassed: true},
		"in transactions": {first: transaction, later: transaction},
	}, func(t *testing.T, _ string, c example) {
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

func TestWhoComesWhileALoadOutlivesItsTimeoutWaitsAsLongAndFails(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]bool{"Get": false, "GetMany": true}, func(t *testing.T, _ string, many bool) {
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

// What is not stored is for those who began before it was there. The epoch of a new tag is made between the answer and the store.
func TestAGetThatBeginsAfterALoadHasReturnedSharesItOnlyIfItIsStored(t *testing.T) {
	t.Parallel()
	type example struct {
		cfg    Config
		absent bool
		loads  int64
	}
	expect.Each(t, map[string]example{
		"TTL -1": {cfg: Config{TTL: off}, loads: 2}, "NegativeTTL -1": {cfg: Config{NegativeTTL: off}, absent: true, loads: 2}, "stored": {loads: 1},
	}, func(t *testing.T, _ string, c example) {
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

func TestALoadThatOutlivesItsTimeoutSaysSo(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(g *Guard, hang <-chan struct{}) error{
		"one key": func(g *Guard, hang <-chan struct{}) error {
			_, err := Get(t.Context(), g, "k", func(context.Context) (string, error) {
				<-hang
				return "v", nil
			})
			return err
		},
		"a batch": func(g *Guard, hang <-chan struct{}) error {
			_, err := GetMany(t.Context(), g, []string{"k", "k2"}, func(context.Context, []string) (map[string]string, error) {
				<-hang
				return nil, nil
			})
			return err
		},
	}, func(t *testing.T, _ string, ask func(g *Guard, hang <-chan struct{}) error) {
		cfg, log := logged()
		cfg.LoadTimeout, cfg.SlowLoad = brisk, time.Minute
		g := newFleet(t, standalone(t), 1, cfg).guards[0]
		hang := make(chan struct{})
		expect.ErrorIs(t, ask(g, hang), context.DeadlineExceeded)
		redistest.Await(t, "it is logged", func() bool {
			said := lines(log(), "slow load, it still runs")
			return len(said) == 1 && strings.Contains(said[0], "LoadTimeout") && strings.Contains(said[0], "key=k")
		})
		close(hang)
	})
}

// newBypassing returns a Guard that only loads, and sends nothing: the time of a synctest stands still while somebody waits for a network.
func newBypassing(t *testing.T, cfg Config) *Guard {
	t.Helper()
	g, err := New(shared.Client(t, func(o *redis.Options) { o.Limiter = refusing{} }), cfg)
	expect.ErrorIs(t, err)
	g.Bypass(true)
	return g
}

// refusing is the Limiter of a client that sends nothing.
type refusing struct{}

func (refusing) Allow() error       { return errors.New("refused") }
func (refusing) ReportResult(error) {}

func TestLoadsThatOutliveTheirTimeoutHaveFailedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, log := logged()
		cfg.LoadTimeout, cfg.MaxLoads = 5*time.Second, 50
		g := newBypassing(t, cfg)
		defer func() { expect.ErrorIs(t, g.Close()) }()
		shown := look(g)
		hang, failure, k := make(chan struct{}), errors.New("relation products is locked"), 0
		load := func(context.Context, int) (string, error) { return "", failure }
		c := products(t, g, func(ctx context.Context, k int) (string, error) { return load(ctx, k) })
		get := func() error {
			k++
			_, err := c.Get(t.Context(), k)
			return err
		}
		for range 14 {
			expect.ErrorIs(t, get(), failure)
			time.Sleep(time.Second)
		}
		load = func(context.Context, int) (string, error) {
			<-hang
			return "", failure
		}
		for range 12 {
			expect.ErrorIs(t, get(), context.DeadlineExceeded)
		}
		time.Sleep(time.Minute) // nobody asks
		now := failing(t, g, "product")
		expect.Equal(t, "it lasts", now.For > 2*time.Minute && now.Failed > 0, true)
		expect.Equal(t, "all fail", now.Failed, now.Loads)
		expect.Says(t, now.Last, "LoadTimeout")
		expect.Equal(t, "ever", shown.times("loaded of product, failed"), 14+12)
		expect.Equal(t, "all-clears", len(lines(log(), "few loads fail")), 0)
		close(hang)
		synctest.Wait()
		expect.Equal(t, "once each", shown.times("loaded of product, failed"), 14+12)
		expect.Equal(t, "it is over", failing(t, g, "product").For, 0)
	})
}

// A loader that hangs would be in no metric otherwise.
func TestALoadThatOutlivesItsTimeoutIsAnEventThenAndNotWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var heard []Event
		g := newBypassing(t, Config{LoadTimeout: 5 * time.Second, Observers: []Observer{On(EventLoad, func(_ context.Context, e Event) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, e)
		})}})
		defer func() { expect.ErrorIs(t, g.Close()) }()
		hang := make(chan struct{})
		_, err := Get(t.Context(), g, "k", func(context.Context) (string, error) {
			<-hang
			return "v", nil
		})
		expect.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = GetMany(t.Context(), g, []string{"a", "b"}, func(context.Context, []string) (map[string]string, error) {
			<-hang
			return nil, nil
		})
		expect.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		for _, when := range []string{"while they run", "when they have returned"} {
			mu.Lock()
			expect.Equal(t, when, len(heard), 3)
			for _, e := range heard {
				expect.ErrorIs(t, e.Err, context.DeadlineExceeded)
				expect.Equal(t, "took", e.Took, 5*time.Second)
			}
			mu.Unlock()
			if when == "while they run" {
				close(hang)
				synctest.Wait()
			}
		}
	})
}

func TestCloseSaysOnceWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, log := logged()
		g := newBypassing(t, cfg)
		hang := make(chan struct{})
		load := func(context.Context) (string, error) {
			<-hang
			return "v", nil
		}
		first := async(g, "first", load)
		time.Sleep(time.Second)
		second := async(g, "second", load)
		synctest.Wait()
		closed := closing(g)
		<-first
		<-second
		time.Sleep(longClose - time.Millisecond)
		expect.Equal(t, "lines at once", len(lines(log(), "Close waits")), 0)
		time.Sleep(time.Minute)
		said := lines(log(), "Close waits")
		expect.Equal(t, "lines", len(said), 1)
		expect.Says(t, said[0], "level=WARN", "key=first loads=2 for=6s")
		close(hang)
		<-closed
		expect.ErrorIs(t, g.Close())
	})
}
