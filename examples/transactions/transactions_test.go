package transactions

import (
	"context"
	"net/http"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/shop"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const (
	before     = `10 at 10000, 10 at 5000, []`
	afterSale  = `9 at 10000, 10 at 5000, ["1 Boot at 10000"]`
	discounted = `9 at 9000, 10 at 4500, ["1 Boot at 9000"]`
)

func TestNoGetReturnsAnOlderValueAfterDone(t *testing.T) {
	forEach(t, func(w *world) {
		w.see("before", before)
		expect.ErrorIs(w, w.all[0].Buy(w.Context(), customer, boot, 1))
		w.see("after a sale, whose keys are known", afterSale)
		expect.ErrorIs(w, w.all[0].Discount(w.Context(), "boots", 10))
		w.see("after a discount, whose keys the statement tells", discounted)
		expect.Equal(w, "intents that stand", w.all[0].guard.Stats().Intents, 0)
	})
}

func TestARollbackChangesNothing(t *testing.T) {
	forEach(t, func(w *world) {
		w.see("before", before)
		err := w.all[0].Buy(w.Context(), customer, boot, 11)
		expect.Equal(w, "what a POST answers", shop.Status[cacheguard.ClassOf(err)], http.StatusInternalServerError)
		w.see("afterwards", before)
		expect.Equal(w, "intents that stand", w.all[0].guard.Stats().Intents, 0)
		expect.ErrorIs(w, w.all[0].Buy(w.Context(), customer, boot, 1))
		w.see("after the next", afterSale)
	})
}

// beginSale begins a sale, and returns when it has announced itself and waits for the row. commit lets it go on.
func (w *world) beginSale() (sold chan error, commit func()) {
	w.Helper()
	tx, err := w.pool.Begin(w.Context())
	must(w, err)
	_, err = tx.Exec(w.Context(), `SELECT FROM products WHERE id = $1 FOR UPDATE`, boot)
	must(w, err)
	sold = make(chan error, 1)
	go func() { sold <- w.all[0].Buy(context.WithoutCancel(w.Context()), customer, boot, 1) }() // owner: the test; stop: commit; joined by what receives
	redistest.Await(w, "the sale waits for the row", func() (waits bool) {
		const blocked = `SELECT count(*) > 0 FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))`
		return w.pool.QueryRow(w.Context(), blocked, tx.Conn().PgConn().PID()).Scan(&waits) == nil && waits
	})
	return sold, func() { must(w, tx.Rollback(w.Context())) }
}

// A miss during the transaction loads the old row, and stores it: only Done can take it away.
func TestAReaderDuringTheTransactionDoesNotBringTheOldRowBack(t *testing.T) {
	forEach(t, func(w *world) {
		sold, commit := w.beginSale()
		for range 2 { // a miss and a hit
			w.see("during the transaction", before)
		}
		held, err := w.all[1].guard.Inspect(w.Context(), w.all[1].Products.Key(boot))
		must(w, err)
		expect.Equal(w, "intents on the product", len(held.Intents), 1)
		commit()
		must(w, <-sold)
		w.see("after Done", afterSale)
	})
}

// With the documented `defer in.Done(ctx)`, ctx is the request's, and that may end before Done has its answer.
func TestAPOSTWhoseClientLeavesAfterTheCommitIsCreated(t *testing.T) {
	forEach(t, func(w *world) {
		w.see("before", before)
		want := afterSale
		for _, fails := range []bool{false, true} {
			ctx, leave := context.WithCancel(w.Context())
			done := w.proxy.On(redistest.Script(protocol.Source("done")), redistest.Hold).Times(1)
			if fails {
				want = `8 at 10000, 10 at 5000, ["1 Boot at 10000" "1 Boot at 10000"]`
			}
			sold := make(chan error, 1)
			go func() { sold <- w.all[0].Buy(ctx, customer, boot, 1) }() // owner: the test; joined below
			<-done.Hit()                                                 // it is committed
			leave()
			w.proxy.Refuse(fails)
			done.Release()
			err := <-sold
			w.proxy.Refuse(false)
			expect.Equal(w, "what the POST answers", shop.Status[cacheguard.ClassOf(err)], http.StatusCreated)
			expect.Equal(w, "Redis failed", err != nil, fails)
			redistest.Await(w, "Redis has been told", func() bool { return w.sees(w.all[1]) == want })
		}
	})
}

func TestAPOSTIsRepeatedOnlyIfNothingWasWritten(t *testing.T) {
	forEach(t, func(w *world) {
		w.see("before", before)
		w.proxy.Refuse(true)
		err := w.all[0].Buy(w.Context(), customer, boot, 1)
		expect.Equal(w, "without Redis", shop.Status[cacheguard.ClassOf(err)], http.StatusServiceUnavailable)
		expect.Equal(w, "written", cacheguard.Written(err), false)
		w.proxy.Refuse(false)
		redistest.Await(w, "Redis is asked again", func() bool {
			in, err := w.all[0].guard.Intend(w.Context(), w.all[0].Products.Changes(boot))
			return err == nil && in.Done(w.Context()) == nil
		})
		w.see("afterwards", before)

		sold, commit := w.beginSale()
		w.proxy.Refuse(true)
		commit()
		err = <-sold
		expect.Equal(w, "Redis fails after the commit", shop.Status[cacheguard.ClassOf(err)], http.StatusCreated)
		expect.Equal(w, "written", cacheguard.Written(err), true)
		w.proxy.Refuse(false)
		redistest.Await(w, "Redis has been told", func() bool { return w.sees(w.all[1]) == afterSale })
	})
}
