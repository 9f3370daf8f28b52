package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

// try looks whether Changed of a mapped table asks for what the log will not have of a table, itself, a partition or a child, or makes keys of columns that have several texts.
func (f *Feed) try(ctx context.Context, side *pgx.Conn, id uint32, m member) error {
	const columnsOf = `SELECT a.attname::text, a.atttypid, coalesce((SELECT format('%I.%I', n.nspname, c.collname) FROM pg_collation c
			JOIN pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = a.attcollation AND NOT c.collisdeterministic), ''), $2 = 'f' OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND a.attnum = ANY(i.indkey)
			AND CASE $2 WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END)
		FROM pg_attribute a WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum`
	rows, err := side.Query(ctx, columnsOf, id, m.identity)
	if err != nil {
		return fmt.Errorf("cdc/postgres: %w", err)
	}
	r := relation{name: quote(m.name)}
	var name, collation string
	var kind uint32
	var logged bool
	collations := make(map[string]string)
	_, err = pgx.ForEachRow(rows, []any{&name, &kind, &collation, &logged}, func() error {
		collations[name] = collation
		r.columns, r.types, r.identity = append(r.columns, name), append(r.types, kind), append(r.identity, logged)
		return nil
	})
	if err != nil {
		return fmt.Errorf("cdc/postgres: %w", err)
	}
	if r.kinds, err = kindsOf(ctx, side, r.types); err != nil {
		return err
	}
	row := func(old bool) func() cdc.Row {
		return func() cdc.Row {
			return cdc.NewRow(r.columns, func(i int) (any, error) {
				if old && !r.identity[i] {
					return nil, r.notLogged()
				}
				return r.kinds[i].sample()
			})
		}
	}
	if err := f.engine.Tables[m.root].Try(row(true), row(false)); err != nil {
		return fmt.Errorf("cdc/postgres: changes of %s%s would invalidate its kinds whole: %w", m.name, of(m), err)
	}
	return f.spelled(ctx, side, m, &r, collations)
}

// spelled looks for columns of keys that have several texts.
func (f *Feed) spelled(ctx context.Context, side *pgx.Conn, m member, r *relation, collations map[string]string) error {
	spellings, of := make(map[string][]engine.Spelling), make(map[string][]engine.Spelling)
	for i, column := range r.columns {
		if r.kinds[i].refused != "" {
			continue
		}
		spellings[column] = engine.Typed(r.kinds[i].name)
		collation := collations[column]
		if collation == "" {
			continue // texts are the same if their bytes are
		}
		if _, asked := of[collation]; !asked {
			found, err := engine.Alike(ctx, collation, func(ctx context.Context, a, b string) (is bool, err error) {
				err = side.QueryRow(ctx, "SELECT $1::text COLLATE "+collation+" = $2", a, b).Scan(&is)
				return is, err
			})
			if err != nil {
				return fmt.Errorf("cdc/postgres: ask for collation %s: %w", collation, err)
			}
			of[collation] = found
		}
		spellings[column] = append(spellings[column], of[collation]...)
	}
	row := func(column string, value any) cdc.Row {
		return cdc.NewRow(r.columns, func(i int) (any, error) {
			if r.columns[i] == column {
				return value, nil
			}
			return r.kinds[i].sample()
		})
	}
	err := f.engine.Tables[m.root].Spelled(r.columns, row, func(column string) []engine.Spelling { return spellings[column] })
	if err != nil {
		return fmt.Errorf("cdc/postgres: %w", err)
	}
	return nil
}
