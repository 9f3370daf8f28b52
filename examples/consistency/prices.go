package main

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
)

// prices is a table of prices that only rise, so that of two prices the older one is known.
type prices struct {
	db        *sqldb.DB
	table     string
	queryTime time.Duration
	hasRead   func() // for tests: a reader has the row, and has not been told
	commits   func() // for tests: a transaction is about to commit
}

func openPrices(ctx context.Context, db *sqldb.DB, products int, queryTime time.Duration) (*prices, error) {
	table, err := db.Create(ctx, "prices", `id INTEGER PRIMARY KEY, cents INTEGER NOT NULL`, `i, 1000`, products)
	return &prices{db, table, queryTime, func() {}, func() {}}, err
}

// slow is one read in how many that takes ten times as long, as some do: the others in a queue, a pause of the garbage
// collector, a packet sent twice.
const slow = 20

// read returns the price of a product. It takes its time after the database has looked: the answer is on its way, and may
// be overtaken.
func (p *prices) read(ctx context.Context, id int) (cents int64, err error) {
	err = p.db.QueryRowContext(ctx, `SELECT cents FROM `+p.table+` WHERE id = $1`, id).Scan(&cents)
	p.hasRead()
	took := p.queryTime
	if rand.IntN(slow) == 0 {
		took *= 10
	}
	return cents, errors.Join(err, answer(ctx, took))
}

// raise adds a cent to the price of a product, and returns the new one.
func (p *prices) raise(ctx context.Context, id int) (cents int64, err error) {
	return p.raiseIn(ctx, p.db.Writer, id)
}

// raiseIn does it in a transaction that somebody else commits.
func (p *prices) raiseIn(ctx context.Context, in asked, id int) (cents int64, err error) {
	raise := `UPDATE ` + p.table + ` SET cents = cents + 1 WHERE id = $1 RETURNING cents`
	err = in.QueryRowContext(ctx, raise, id).Scan(&cents)
	return cents, errors.Join(err, answer(ctx, p.queryTime))
}

// asked is a database or a transaction.
type asked interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// answer waits for the database's answer.
func answer(ctx context.Context, took time.Duration) error {
	if !program.Pause(ctx, took) {
		return context.Cause(ctx)
	}
	return nil
}
