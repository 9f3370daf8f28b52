package sim

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// uncommitted is added to the versions that a transaction sees, and that nobody else may.
const uncommitted = 1 << 40

var (
	errOver       = errors.New("the transaction has already been committed or rolled back")
	errRolledBack = errors.New("rolled back")
)

type txKey struct{}

// tx is a transaction in the database.
type tx struct{ over atomic.Bool }

// reading is a transaction that reads rows before and after it commits, and is at times slower than UpdateTimeout. After its commit, its
// connection is another's: a load with its context fails.
func (w *worker) reading(write func() error) body {
	return func(within context.Context, _ func(...int) error) error {
		tx := new(tx)
		ctx := context.WithValue(within, txKey{}, tx)
		w.readWithin(ctx)
		if w.random.IntN(4) == 0 {
			time.Sleep(leaseTTL + rand64(w.random, leaseTTL))
			w.readWithin(ctx)
		}
		err := write()
		tx.over.Store(true)
		w.readWithin(ctx)
		return err
	}
}

// readWithin reads with the context of a transaction. What it gets is the transaction's business.
func (w *worker) readWithin(ctx context.Context) {
	if w.random.IntN(2) == 0 {
		_, _ = w.in.get(ctx, w.random.IntN(rows)) // it may be over
	} else {
		_, _ = w.in.getMany(ctx, []int{w.random.IntN(rows), w.random.IntN(rows)}) // the same
	}
}

// naming is a transaction that names a row late, twice at the same time, while it is cut off from Redis or not, and again until it may commit. At
// times, its process dies between the commit and Done.
func (w *worker) naming(row int, write func() error) body {
	return func(within context.Context, also func(...int) error) error {
		if w.world.plan.faults && w.random.IntN(2) == 0 {
			w.in.net.setCut(true)
		}
		var named sync.WaitGroup
		answers := make([]error, 2)
		for i := range answers {
			named.Go(func() { answers[i] = also(row) })
		}
		named.Wait()
		if w.dead() {
			return errRolledBack
		}
		w.in.net.setCut(false)
		for n := 0; n < 3 && answers[0] != nil; n++ {
			answers[0] = also(row)
		}
		if answers[0] != nil {
			return errRolledBack // it may not commit
		}
		err := w.reading(write)(within, also)
		if w.world.plan.faults && w.in != w.world.instances[0] && w.random.IntN(4) == 0 {
			w.world.kill(w.in)
		}
		return err
	}
}

// committed notes, at the moment of a commit, that an intent on the rows certainly stands, if it began a short while ago.
func (w *worker) committed(name string, began time.Time, rows []int) {
	if !strings.HasPrefix(name, "Intend and") || time.Since(began) >= leaseTTL {
		return
	}
	t := w.world.truth
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range rows {
		t.safe[row] = t.rows[row] + 1
	}
}
