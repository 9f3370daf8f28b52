package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

// try returns which columns Changed of a table asks for that the feed does not know, and those of keys that have several texts.
func try(ctx context.Context, db *sql.DB, t *engine.Table, s schema) error {
	columns := slices.Sorted(maps.Keys(s))
	row := func(column string, value any) cdc.Row {
		return cdc.NewRow(columns, func(i int) (any, error) {
			if columns[i] == column {
				return value, nil
			}
			return s[columns[i]].sample()
		})
	}
	spellings, err := s.spellings(ctx, db)
	if err != nil {
		return err
	}
	sample := func() cdc.Row { return row("", nil) }
	if err := t.Try(sample, sample); err != nil {
		return fmt.Errorf("cdc/mysql: changes of %s would invalidate its kinds whole: %w", t.Name, err)
	}
	if err := t.Spelled(columns, row, func(column string) []engine.Spelling { return spellings[column] }); err != nil {
		return fmt.Errorf("cdc/mysql: %w", err)
	}
	return nil
}

// spellings are the texts by which the server finds the same row, of each column.
func (s schema) spellings(ctx context.Context, db *sql.DB) (map[string][]engine.Spelling, error) {
	all, of := make(map[string][]engine.Spelling), make(map[string][]engine.Spelling)
	for name, c := range s {
		switch {
		case c.refused != "" || strings.HasSuffix(c.kind, "blob") || strings.HasSuffix(c.kind, "binary"):
			continue
		case c.zeros > 0:
			all[name] = engine.Zeros(c.zeros)
			continue
		case c.collated == "" && c.kind == "bit":
			all[name] = engine.Typed("int")
			continue
		case c.collated == "":
			all[name] = engine.Typed(c.kind)
			continue
		case of[c.collated] == nil:
			same := func(ctx context.Context, a, b string) (is bool, err error) { // names of the server's own
				text := fmt.Sprintf("CONVERT(? USING %s)", c.charset)
				err = db.QueryRowContext(ctx, "SELECT "+text+" COLLATE "+c.collated+" = "+text, a, b).Scan(&is)
				return is, err
			}
			found, err := engine.Alike(ctx, c.collated, same)
			if err != nil {
				return nil, fmt.Errorf("cdc/mysql: ask for collation %s: %w", c.collated, err)
			}
			of[c.collated] = found
		}
		all[name] = append(engine.Labels(c.labels), of[c.collated]...)
	}
	return all, nil
}
