package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// openPostgres does not connect yet.
func openPostgres(raw string) (*sql.DB, error) {
	if !strings.HasPrefix(raw, "postgres://") && !strings.HasPrefix(raw, "postgresql://") {
		return nil, errors.New("DATABASE_URL is no address of a PostgreSQL: it must begin with postgres://")
	}
	config, err := pgx.ParseConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL is no address of a PostgreSQL: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	return stdlib.OpenDB(*config), nil
}
