package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends/sqldb"
)

// shelf keeps the stock and the buyers in Redis, and sells as the tutorials do: look, decide, write. That is right only if
// nobody else writes between the look and the write.
type shelf struct {
	opening
	stock, buyers string
}

func newShelf(o opening) shelf { return shelf{o, o.prefix + ":stock", o.prefix + ":buyers"} }

func (s shelf) Put(ctx context.Context, units int) error {
	return s.rdb.Set(ctx, s.stock, units, 0).Err()
}

func (s shelf) Left(ctx context.Context) (int, error) { return s.rdb.Get(ctx, s.stock).Int() }

func (s shelf) Close() error { return nil }

// sell needs a lock around it.
func (s shelf) sell(ctx context.Context, user int) error {
	look := s.rdb.Pipeline()
	left, bought := look.Get(ctx, s.stock), look.SIsMember(ctx, s.buyers, user)
	if _, err := look.Exec(ctx); err != nil {
		return err
	}
	units, err := left.Int()
	switch {
	case err != nil:
		return err
	case bought.Val():
		return errAlready
	case units == 0:
		return errSoldOut
	}
	s.pause(ctx) // a query, a call of another service, a pause of the garbage collector
	if ctx.Err() != nil {
		return context.Cause(ctx) // the lease was lost: somebody else may be selling
	}
	_, err = s.rdb.Pipelined(ctx, func(write redis.Pipeliner) error {
		write.Set(ctx, s.stock, units-1, 0)
		write.SAdd(ctx, s.buyers, user)
		return nil
	})
	return err
}

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
