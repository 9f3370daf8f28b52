package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// merges knows the MERGE tables, which have the rows of MyISAM tables: the log has them by the name of the MERGE table. As that may be another one by the time that its rows are
// read, each definition counts as one of all MyISAM tables, too.
type merges struct {
	ask   func(ctx context.Context, engine string, names []string) ([]string, error) // names of tables of an engine, of all or some
	loose []*engine.Table                                                            // mapped ones of MyISAM
	known bool                                                                       // which these are
	names map[string]bool                                                            // of MERGE tables; nil: not known
}

// forget is called when tables may be others by now.
func (m *merges) forget(mapped bool) {
	m.names, m.known = nil, m.known && !mapped
}

// may returns the mapped tables whose rows other tables may have.
func (m *merges) may(ctx context.Context, all engine.Tables) ([]*engine.Table, error) {
	if m.known || m.ask == nil {
		return m.loose, nil
	}
	names, err := m.ask(ctx, "MyISAM", all.Names())
	if err != nil {
		return nil, err
	}
	m.loose, m.known = nil, true
	for _, name := range names {
		if table := all[name]; table != nil {
			m.loose = append(m.loose, table)
		}
	}
	return m.loose, nil
}

// of returns the mapped tables that rows of a table that is not mapped may belong to.
func (m *merges) of(ctx context.Context, all engine.Tables, e *replication.RowsEvent) ([]*engine.Table, error) {
	loose, err := m.may(ctx, all)
	if err != nil || len(loose) == 0 {
		return nil, err
	}
	if m.names == nil {
		names, err := m.ask(ctx, "MRG_MyISAM", nil)
		if err != nil {
			return nil, err
		}
		m.names = make(map[string]bool)
		for _, name := range names {
			m.names[name] = true
		}
	}
	if m.names[nameOf(e)] {
		return loose, nil
	}
	return nil, nil
}

// ofEngine returns the names of the tables of an engine.
func ofEngine(ctx context.Context, db *sql.DB, engine string, names []string) (all []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	query, args := "SELECT concat(table_schema, '.', table_name) FROM information_schema.tables WHERE engine = ?", []any{engine}
	if names != nil {
		var some []string
		for _, name := range names {
			database, table, _ := strings.Cut(name, ".")
			some, args = append(some, "(?, ?)"), append(args, database, table)
		}
		query += " AND (table_schema, table_name) IN (" + strings.Join(some, ", ") + ")" //nolint:gosec // placeholders
	}
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("cdc/mysql: look for MERGE tables: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err says what matters
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("cdc/mysql: %w", err)
		}
		all = append(all, name)
	}
	return all, rows.Err()
}
