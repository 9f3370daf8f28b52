package main

import (
	"context"

	"github.com/cacheguard/go/examples/internal/backends/sqldb"
)

// orders is a table of what was sold. It has no unique index: it is the witness, and does not help.
type orders struct {
	db    *sqldb.DB
	table string
}

func openOrders(ctx context.Context, db *sqldb.DB) (*orders, error) {
	table, err := db.Create(ctx, "orders", `buyer INTEGER NOT NULL`, "", 0)
	return &orders{db, table}, err
}

func (o *orders) add(ctx context.Context, user int) error {
	_, err := o.db.Writer.ExecContext(ctx, `INSERT INTO `+o.table+` (buyer) VALUES ($1)`, user)
	return err
}

// count returns how many orders there are, and how many of them are by users who have another one.
func (o *orders) count(ctx context.Context) (sold, twice int, err error) {
	var buyers int
	err = o.db.QueryRowContext(ctx, `SELECT count(*), count(DISTINCT buyer) FROM `+o.table).Scan(&sold, &buyers)
	return sold, sold - buyers, err
}
