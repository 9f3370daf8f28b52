package cacheguard

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestALoadThatOutlivesItsTimeoutSaysSo(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(g *Guard, hang <-chan struct{}) error{
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
		expectIn(t, now.Last, "LoadTimeout")
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
		if !strings.Contains(said[0], "level=WARN") || !strings.Contains(said[0], "key=first loads=2 for=6s") {
			t.Error(said[0])
		}
		close(hang)
		<-closed
		expect.ErrorIs(t, g.Close())
	})
}
