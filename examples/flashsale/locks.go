package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/table"
	"github.com/cacheguard/go/internal/testing/rungs"
	"github.com/cacheguard/go/mutex"
)

// none is the way without a lock, and all stands for each of them.
const none, all = "none", "all"

// lockNames are what -lock takes.
func lockNames() (names []string) {
	for _, r := range rungs.All {
		names = append(names, r.Name)
	}
	return append(names, none, all)
}

// anyLock sells one at a time, whichever instance it is, under a lock that is kept elsewhere than the stock.
type anyLock struct {
	shelf
	locks rungs.Locks
}

func (s anyLock) Sell(ctx context.Context, user int) error {
	return s.locks.DoFenced(ctx, "stock", func(ctx context.Context, _ int64) error { return s.sell(ctx, user) })
}

func (s anyLock) Close() error { return errors.Join(s.locks.Close(), s.shelf.Close()) }

// leaseOfAny is the lease of such a lock.
const leaseOfAny = 10 * time.Second

// rungWay is the way to sell under a lock, with its servers. Without them there is no way.
func rungWay(r rungs.Rung) (w way, end func(), err error) {
	end = func() {}
	switch r.Name {
	case "redis":
		return way{r.Title, openMutex, false}, end, nil
	case "fair":
		return way{r.Title, openFairMutex, false}, end, nil
	}
	started, err := r.Start("")
	if err != nil {
		return w, end, err
	}
	return way{name: r.Title, open: func(o opening) (seller, error) {
		locks, err := started.Open(o.prefix+":lock", leaseOfAny)
		if err != nil {
			return nil, err
		}
		return anyLock{newShelf(o), locks}, nil
	}}, started.End, nil
}

// compareLocks holds a sale under each chosen lock, and says what each survives. One whose server is missing is left out.
func (s *settings) compareLocks(ctx context.Context, out io.Writer, server *backends.RedisServer, db *sqldb.DB) (broken error) {
	rows := [][]string{{"", "sold", "oversold", "orders/s", "p50", "p99", "it survives"}}
	var round []lockRow
	sell := func(w way, survives string) error {
		r, err := stage{server, db, *s}.sell(ctx, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		rows = append(rows, []string{
			w.name, table.Count(r.sold), table.Count(r.oversold()), table.Count(int(float64(r.sold) / r.took.Seconds())),
			table.Millis(table.Quantile(r.waits, 0.5)), table.Millis(table.Quantile(r.waits, 0.99)), survives,
		})
		round = append(round, rowOf(r, survives))
		if !w.wrong && !r.right() {
			broken = errors.Join(broken, fmt.Errorf("NOT AS PROMISED: %s: see the table", w.name))
		}
		return nil
	}
	for _, r := range rungs.All {
		if s.lock != all && s.lock != r.Name {
			continue
		}
		w, end, err := rungWay(r)
		if err != nil {
			_, _ = fmt.Fprintf(out, "left out: %v\n", err)
			continue
		}
		err = sell(w, r.Survives)
		end()
		if err != nil {
			return err
		}
	}
	if s.lock == all || s.lock == none {
		if err := sell(way{"no lock", openUnlocked, true}, "not even two who buy at once"); err != nil {
			return err
		}
	}
	table.Write(out, rows)
	_, _ = fmt.Fprint(out, "\nThe stock and the buyers are in Redis in each case; only the lock is elsewhere.\n")
	if s.json != "" {
		return errors.Join(broken, s.addTo(s.json, round))
	}
	return broken
}

func checkLock(name string) error {
	if name == "" || slices.Contains(lockNames(), name) {
		return nil
	}
	return fmt.Errorf("-lock: %q is none of %s", name, strings.Join(lockNames(), ", "))
}

// locked sells one at a time, whichever instance it is.
type locked struct {
	shelf
	locks *mutex.Locker
}

func openMutex(o opening) (seller, error) { return openLocked(o, false) }

// openFairMutex serves all who wait in the order in which they asked. Otherwise an instance may serve a few of its own
// before it is another one's turn.
func openFairMutex(o opening) (seller, error) { return openLocked(o, true) }

func openLocked(o opening, fair bool) (seller, error) {
	locks, err := mutex.New(o.rdb, mutex.Config{Prefix: o.prefix + ":lock", Fair: fair, TTL: o.lease, RedisTimeout: backends.Patience})
	if err != nil {
		return nil, err
	}
	return locked{newShelf(o), locks}, nil
}

func (s locked) Sell(ctx context.Context, user int) error {
	return s.locks.Do(ctx, "stock", func(ctx context.Context, _ *mutex.Lease) error { return s.sell(ctx, user) })
}

func (s locked) Close() error { return errors.Join(s.locks.Close(), s.shelf.Close()) }
