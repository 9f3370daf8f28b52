package main

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // a driver

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func TestWithoutAFeedAllPricesAreOldAndWithOneNoneIs(t *testing.T) {
	for name, address := range map[string]func(*testing.T) string{"SQLite": func(*testing.T) string { return "" }, "PostgreSQL": startPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("REDIS_URL", "redis://"+shared.Addr())
			t.Setenv("DATABASE_URL", address(t))
			var out, problems strings.Builder
			if code := new(settings).program().Execute(t.Context(), []string{"-short"}, &out, &problems); code != 0 {
				t.Fatal(code, problems.String())
			}
			for _, text := range []string{"20 of 20 prices are old until", " 0 of 20 prices are old", "The feed read 20 rows, and invalidated 20 keys."} {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it does not say %q:\n%s", text, out.String())
				}
			}
		})
	}
}

func startPostgres(t *testing.T) string {
	server := servers.StartPostgres(t, func(address string) bool {
		db, err := sql.Open("pgx", address)
		if err != nil {
			return false
		}
		defer db.Close()
		return db.PingContext(context.Background()) == nil
	}, "wal_level=logical")
	return "postgres://test@/postgres?host=" + url.QueryEscape(filepath.Dir(server.Socket))
}

func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	var out, problems strings.Builder
	if code := new(settings).program().Execute(t.Context(), []string{"-products", "0"}, &out, &problems); code != 2 || !strings.Contains(problems.String(), "-products") {
		t.Error(code, problems.String())
	}
}
