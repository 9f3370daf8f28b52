package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/outbox"
	"github.com/cacheguard/go/cdc/postgres"
)

// open makes the feed of the database, and what it needs there; cleanUp removes that.
func (s *shop) open(ctx context.Context) (f feed, cleanUp func(context.Context) error, err error) {
	byID := func(r cdc.Row) (int64, error) { return r.Int64("id") }
	if address := os.Getenv("DATABASE_URL"); address != "" {
		return s.openPostgres(ctx, address, cdc.Rows("public."+s.table, s.products, byID))
	}
	return s.openOutbox(ctx, cdc.Rows(s.table, s.products, byID))
}

// openOutbox is for SQLite: triggers note what changes.
func (s *shop) openOutbox(ctx context.Context, table cdc.Table) (feed, func(context.Context) error, error) {
	for _, statement := range append(outbox.CreateTable(outbox.SQLite), outbox.Triggers(outbox.SQLite, s.table, "id")...) { // once, in a migration
		if _, err := s.db.Writer.ExecContext(ctx, statement); err != nil {
			return nil, nil, err
		}
	}
	f, err := outbox.New(s.db.Writer, outbox.Config{
		Dialect: outbox.SQLite, Tables: []cdc.Table{table}, Guards: []*cacheguard.Guard{s.guard},
	})
	return f, func(context.Context) error { return nil }, err // the database goes with the example
}

// openPostgres is for PostgreSQL: the feed reads its log. An example leaves no slot behind.
func (s *shop) openPostgres(ctx context.Context, address string, table cdc.Table) (feed, func(context.Context) error, error) {
	if _, err := s.db.ExecContext(ctx, fmt.Sprintf("CREATE PUBLICATION %[1]s FOR TABLE %[1]s", s.table)); err != nil { // once, by an administrator
		return nil, nil, err
	}
	drop := func(ctx context.Context) error {
		_, err := s.db.ExecContext(ctx, "DROP PUBLICATION "+s.table)
		return err
	}
	f, err := postgres.New(postgres.Config{
		Conn: address, Publication: s.table, Slot: s.table, Tables: []cdc.Table{table}, Guards: []*cacheguard.Guard{s.guard}, Temporary: true,
	})
	if err != nil {
		return nil, nil, errors.Join(err, drop(ctx))
	}
	return f, drop, nil
}
