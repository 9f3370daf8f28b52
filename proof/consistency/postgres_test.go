package consistency

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/internal/testing/servers"
)

// startPostgres runs a PostgreSQL of the test's own until it ends, and returns how to connect to it.
func startPostgres(t *testing.T) (url string) {
	t.Helper()
	return servers.StartPostgres(t, func(address string) bool {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			return false
		}
		return conn.Close(t.Context()) == nil
	}).Address
}
