package feedtest

import (
	"context"
	"database/sql"
)

// Attempt is a Soak's Exec on a database. It runs statements on one connection, until one fails.
func Attempt(db *sql.DB) func(context.Context, []string) {
	return func(ctx context.Context, statements []string) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return
		}
		defer conn.Close()
		for _, statement := range statements {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				break
			}
		}
		_, _ = conn.ExecContext(ctx, "ROLLBACK") // what is open
	}
}

// Products is a Soak's Truth: the names of the products in a database.
func Products(db *sql.DB) func(context.Context) (map[int64]string, error) {
	return func(ctx context.Context) (map[int64]string, error) {
		rows, err := db.QueryContext(ctx, "SELECT id, name FROM products")
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		names := make(map[int64]string)
		for rows.Next() {
			var id int64
			var name string
			if err := rows.Scan(&id, &name); err != nil {
				return nil, err
			}
			names[id] = name
		}
		return names, rows.Err()
	}
}
