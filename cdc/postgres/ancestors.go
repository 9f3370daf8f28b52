package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ancestors returns the ids and names of a table, and of the tables that it is a partition or a child of.
func ancestors(ctx context.Context, side *pgx.Conn, id uint32) (map[uint32]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, err := side.Query(ctx, `WITH RECURSIVE up AS (SELECT $1::oid AS id UNION SELECT inhparent FROM pg_inherits JOIN up ON inhrelid = up.id)
		SELECT c.oid, n.nspname || '.' || c.relname FROM up JOIN pg_class c ON c.oid = up.id JOIN pg_namespace n ON n.oid = c.relnamespace`, id)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	all := make(map[uint32]string)
	var ancestor uint32
	var name string
	_, err = pgx.ForEachRow(rows, []any{&ancestor, &name}, func() error {
		all[ancestor] = name
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	return all, nil
}
