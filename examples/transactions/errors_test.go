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
	"github.com/cacheguard/go/examples/transactions/ent/db"
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
	"ent":  db.IsNotFound,
}

// both has both instances ask for a product, while the table is locked. When one of them loads and the other waits for it, the statement ends the lock.
func (w *world) both(product int64, statement string) (errs [2]error) {
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
	redistest.Await(w, "one instance waits for the other's load", func() bool {
		in, err := w.all[1].guard.Inspect(w.Context(), w.all[1].Products.Key(product))
		return err == nil && in.Waiting == 1
	})
	_, err = tx.Exec(w.Context(), statement)
	must(w, err)
	must(w, tx.Commit(w.Context()))
	return [2]error{<-asked[0], <-asked[1]}
}

func TestWhatDoesNotExistIsTheLibrarysErrorForWhoLoadedAndWhoWaited(t *testing.T) {
	forEach(t, func(w *world) {
		is := absences[w.program]
		for n, err := range w.both(404, `SELECT 1`) {
			expect.Equal(w, fmt.Sprintf("instance %d: %v is absence", n, err), is(err), true)
		}
		for n, i := range w.all {
			_, err := i.Products.Get(w.Context(), 404)
			expect.Equal(w, fmt.Sprintf("remembered by instance %d: %v is absence", n, err), is(err), true)
		}
	})
}

// Redis may forget a failure before a busy instance asks for it. Then that loads itself, and the next product is tried.
func TestAnErrorOfPostgreSQLKeepsItsCodeForWhoLoadedAndWhoWaited(t *testing.T) {
	forEach(t, func(w *world) {
		for product := range int64(10) {
			errs := w.both(product+1, `ALTER TABLE products RENAME TO moved`)
			_, err := w.pool.Exec(w.Context(), `ALTER TABLE moved RENAME TO products`)
			must(w, err)
			for n, err := range errs {
				e, is := errors.AsType[*pgconn.PgError](err)
				if !is {
					w.Fatalf("instance %d: %v is none of PostgreSQL's", n, err)
				}
				expect.Equal(w, fmt.Sprint("code on instance ", n), e.Code, "42P01")
				expect.Equal(w, fmt.Sprint("severity on instance ", n), e.SeverityUnlocalized, "ERROR")
				expect.Equal(w, fmt.Sprint("text on instance ", n), e.Message, `relation "products" does not exist`)
			}
			if _, waited := errors.AsType[*cacheguard.LoadError](errors.Join(errs[:]...)); waited {
				return
			}
		}
		w.Error("no load was shared")
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
