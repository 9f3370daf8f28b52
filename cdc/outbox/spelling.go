package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

// spelled returns which columns of keys have several texts by which the database finds the same row.
func (f *Feed) spelled(ctx context.Context, table *engine.Table, n *noted) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	spellings, err := f.spellings(ctx, table.Name, n)
	if err != nil {
		return fmt.Errorf("cdc/outbox: ask how %s compares texts: %w", table.Name, err)
	}
	row := func(column string, value any) cdc.Row {
		return cdc.NewRow(n.columns, func(i int) (any, error) {
			if n.columns[i] == column {
				return value, nil
			}
			return n.value(n.columns[i], "1")
		})
	}
	err = table.Spelled(n.columns, row, func(column string) []engine.Spelling { return spellings[column] })
	if err != nil {
		return fmt.Errorf("cdc/outbox: %w", err)
	}
	return nil
}

// collated asks for the types and collations of a table's columns: empty, if texts are the same if their bytes are.
func (f *Feed) collated(table string) string {
	d := f.cfg.Dialect
	switch d {
	case PostgreSQL:
		return join("SELECT t.attname, t.type, CASE WHEN c.oid IS NULL THEN '' ELSE format('%I.%I', s.nspname, c.collname) END FROM (", typesOf([]string{table}), ") t(name, attname, type) ",
			"JOIN pg_attribute a ON a.attrelid = to_regclass(", d.text(d.quote(table)), ") AND a.attname = t.attname ",
			"LEFT JOIN (pg_collation c JOIN pg_namespace s ON s.oid = c.collnamespace) ON c.oid = a.attcollation AND NOT c.collisdeterministic")
	case MySQL:
		return join("SELECT column_name, data_type, coalesce(concat(character_set_name, ' ', collation_name), ''), column_type FROM information_schema.columns ",
			"WHERE table_schema = DATABASE() AND table_name = ", d.text(table))
	}
	return join("SELECT name, upper(type), name FROM pragma_table_xinfo(", d.text(table), ")")
}

// spellings are the texts by which the database finds the same row, of each column.
func (f *Feed) spellings(ctx context.Context, table string, n *noted) (map[string][]engine.Spelling, error) {
	rows, err := f.texts(ctx, f.collated(table))
	if err != nil {
		return nil, err
	}
	all, of := make(map[string][]engine.Spelling), make(map[string][]engine.Spelling)
	for _, row := range rows {
		column, kind, collation := row[0], row[1], row[2]
		if n.refused[column] != "" {
			continue
		}
		switch {
		case n.zeros[column] > 0:
			all[column] = engine.Zeros(n.zeros[column])
		case f.cfg.Dialect == SQLite && affinity(kind) == "numeric":
			all[column] = engine.Typed("integer")
		case f.cfg.Dialect == MySQL && collation != "":
			all[column] = engine.Labels(row[3])
		case f.cfg.Dialect == SQLite:
		default:
			all[column] = engine.Typed(kind)
		}
		if collation == "" {
			continue
		}
		if _, asked := of[collation]; !asked {
			said := map[bool]string{true: "of its column", false: collation}[f.cfg.Dialect == SQLite]
			found, err := engine.Alike(ctx, said, func(ctx context.Context, a, b string) (bool, error) {
				rows, err := f.texts(ctx, f.cfg.Dialect.compares(table, collation, a, b))
				return err == nil && len(rows) == 1, err
			})
			if err != nil {
				return nil, err
			}
			of[collation] = found
		}
		all[column] = append(slices.Clone(all[column]), of[collation]...)
	}
	return all, nil
}

// compares has a row if a collation takes two texts for one; on SQLite, that of a column.
func (d Dialect) compares(table, collation, a, b string) string {
	switch d {
	case PostgreSQL:
		return join("SELECT 1 WHERE ", text(a), " COLLATE ", collation, " = ", text(b))
	case MySQL:
		charset, name, _ := strings.Cut(collation, " ")
		return join("SELECT 1 FROM (SELECT 1) t WHERE CONVERT(", text(a), " USING ", charset, ") COLLATE ", name, " = CONVERT(", text(b), " USING ", charset, ")")
	}
	column := d.quote1(collation)
	return join("SELECT 1 FROM (SELECT ", column, " AS k FROM ", d.quote(table), " WHERE false UNION ALL SELECT ", text(a), ") AS few WHERE k = ", text(b))
}

// affinity is SQLite's of a type: whether it makes numbers of texts.
func affinity(kind string) string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(kind, word) })
	}
	switch {
	case has("INT"):
		return "numeric"
	case has("CHAR", "CLOB", "TEXT"):
		return "text"
	case has("BLOB") || kind == "":
		return "none"
	}
	return "numeric"
}
