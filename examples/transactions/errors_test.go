package transactions

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	pgxv5 "github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	gormio "gorm.io/gorm"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/shop"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// absences say whether an error is a program's own for a row that does not exist.
var absences = map[string]func(error) bool{
	"sql":  func(err error) bool { return err == stdsql.ErrNoRows },         //nolint:errorlint // callers get the error itself
	"pgx":  func(err error) bool { return err == pgxv5.ErrNoRows },          //nolint:errorlint // the same
	"gorm": func(err error) bool { return err == gormio.ErrRecordNotFound }, //nolint:errorlint // the same
	"sqlc": func(err error) bool { return err == pgxv5.ErrNoRows },          //nolint:errorlint // the same
}

// share has both instances ask for a product while the table is locked, and returns their errors. When one of them loads and the other waits for it, the statement ends the
// lock. On a busy machine Redis may forget the lease or the failure before the other has heard of it: then both load, and the next product is tried. came says
// whether one of the errors came from the other instance.
func (w *world) share(statement, back string, came func(error) bool) (errs [2]error) {
	w.Helper()
	for i := range w.all { // with a lease that outlasts a pause
		w.all[i] = open(w, w.program, w.address, w.redis.Client(w), 0)
	}
	for product := range int64(10) {
		errs, shared := w.both(1000+product, statement)
		_, err := w.pool.Exec(w.Context(), back)
		must(w, err)
		if shared && (came(errs[0]) || came(errs[1])) {
			return errs
		}
	}
	w.Fatal("no load was shared")
	return errs
}

func (w *world) both(product int64, statement string) (errs [2]error, shared bool) {
	w.Helper()
	tx, err := w.pool.Begin(w.Context())
	must(w, err)
	defer tx.Rollback(context.WithoutCancel(w.Context()))
	_, err = tx.Exec(w.Context(), `LOCK TABLE products IN ACCESS EXCLUSIVE MODE`)
	must(w, err)
	var asked [2]chan error
	for n, i := range w.all {
		asked[n] = make(chan error, 1)
		go func() { // owner: the test; ends with the transaction; joined by receiving
			_, err := i.Products.Get(context.WithoutCancel(w.Context()), product)
			asked[n] <- err
		}()
	}
	redistest.Await(w, "one instance waits for the other's load, or both load", func() bool {
		in, err := w.all[1].guard.Inspect(w.Context(), w.all[1].Products.Key(product))
		shared = err == nil && in.Waiting == 1
		var loads int
		const blocked = `SELECT count(*) FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))`
		return shared || w.pool.QueryRow(w.Context(), blocked, tx.Conn().PgConn().PID()).Scan(&loads) == nil && loads == 2
	})
	_, err = tx.Exec(w.Context(), statement)
	must(w, err)
	must(w, tx.Commit(w.Context()))
	return [2]error{<-asked[0], <-asked[1]}, shared
}

func TestAbsenceIsTheLibrarysErrorForTheLoaderAndTheWaiter(t *testing.T) {
	forEach(t, func(w *world) {
		is := absences[w.program]
		for n, err := range w.share(`SELECT 1`, `SELECT 1`, is) {
			expect.Equal(w, fmt.Sprintf("instance %d: %v is absence", n, err), is(err), true)
		}
	})
}

func TestAnErrorOfPostgreSQLKeepsItsCodeForTheLoaderAndTheWaiter(t *testing.T) {
	forEach(t, func(w *world) {
		errs := w.share(`ALTER TABLE products RENAME TO moved`, `ALTER TABLE moved RENAME TO products`, func(err error) bool {
			_, is := errors.AsType[*cacheguard.LoadError](err)
			return is
		})
		for n, err := range errs {
			e, is := errors.AsType[*pgconn.PgError](err)
			if !is {
				w.Fatalf("instance %d: %v is none of PostgreSQL's", n, err)
			}
			expect.Equal(w, fmt.Sprint("code on instance ", n), e.Code, "42P01")
			expect.Equal(w, fmt.Sprint("severity on instance ", n), e.SeverityUnlocalized, "ERROR")
			expect.Equal(w, fmt.Sprint("text on instance ", n), e.Message, `relation "products" does not exist`)
		}
	})
}

func TestWhatQuotesRowsDoesNotTravel(t *testing.T) {
	t.Parallel()
	secret := &pgconn.PgError{Code: "23505", ConstraintName: "customers_mail", Detail: "Key (mail)=(jo@example.org) already exists.", Where: "jo", InternalQuery: "jo"}
	data := shop.PgErrors{}.EncodeError(fmt.Errorf("loading: %w", secret))
	expect.Equal(t, string(data)+" has the row", strings.Contains(string(data), "jo"), false)
	got, _ := errors.AsType[*pgconn.PgError](shop.PgErrors{}.DecodeError(data))
	expect.Equal(t, "code and constraint", got.Code+" "+got.ConstraintName, "23505 customers_mail")

	secret.Message = strings.Repeat("x", 1000)
	got, _ = errors.AsType[*pgconn.PgError](shop.PgErrors{}.DecodeError(shop.PgErrors{}.EncodeError(secret)))
	expect.Equal(t, "code of what is too large", got.Code, "23505")
	expect.ErrorIs(t, shop.PgErrors{}.DecodeError([]byte("{}")))
	expect.Equal(t, "bytes of another error", len(shop.PgErrors{}.EncodeError(stdsql.ErrNoRows)), 0)
}
