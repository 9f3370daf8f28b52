package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// SelfCheck returns what keeps the feed from working, joined, each with what mends it: a missing outbox, missing triggers, rows of tables that
// are not mapped. It changes nothing. nil: the feed can work.
func (f *Feed) SelfCheck(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	unmapped, err := f.texts(ctx, join("SELECT DISTINCT tbl FROM ", defaultTable, " WHERE NOT (", f.of, ") ORDER BY tbl LIMIT 10"))
	if err != nil {
		return fmt.Errorf("cdc/outbox: read the outbox (if it is not there, mend with: %s): %w", strings.Join(CreateTable(f.cfg.Dialect), "; "), err)
	}
	var problems []error
	for _, table := range unmapped {
		problems = append(problems, fmt.Errorf("cdc/outbox: the outbox has rows of table %s, which is not among Tables here (another version of the program may map it)", table))
	}
	there, err := f.texts(ctx, map[Dialect]string{
		PostgreSQL: "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'",
		MySQL:      "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
		SQLite:     "SELECT name FROM sqlite_master WHERE type = 'trigger'",
	}[f.cfg.Dialect])
	if err != nil {
		return errors.Join(append(problems, fmt.Errorf("cdc/outbox: look for triggers: %w", err))...)
	}
	has := make(map[string]bool)
	for _, name := range there {
		has[name] = true
	}
	events := []string{"INSERT", "UPDATE", "DELETE"}
	if f.cfg.Dialect == PostgreSQL {
		events = []string{"row", "truncate"}
	}
	for _, table := range f.engine.Tables.Names() {
		for _, event := range events {
			if name := trigger(table, event); !has[name] {
				problems = append(problems, fmt.Errorf("cdc/outbox: table %s has no trigger %s (mend with the statements of outbox.Triggers)", table, name))
			}
		}
	}
	return errors.Join(problems...)
}

// texts are the texts of a query.
func (f *Feed) texts(ctx context.Context, query string) (all []string, err error) {
	rows, err := f.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}
