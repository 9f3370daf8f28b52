package sqldb

import (
	"os"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/leaks"
)

// It uses the database that DATABASE_URL names, if it does.
func TestCreateFillsATable(t *testing.T) {
	db, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	table, err := db.Create(t.Context(), "products", `id INTEGER PRIMARY KEY, name TEXT NOT NULL`, `i, 'Product ' || i`, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var rows int
	var last string
	row := db.QueryRowContext(t.Context(), `SELECT count(*), (SELECT name FROM `+table+` WHERE id = 1000) FROM `+table)
	if err := row.Scan(&rows, &last); err != nil || rows != 1000 || last != "Product 1000" {
		t.Errorf("%d rows, the last of them %q, %v", rows, last, err)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder) // where SQLite's file goes, except on Windows
	db, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(folder)
	if len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestABadDATABASE_URLIsRefusedWithoutTellingItsPassword(t *testing.T) {
	for _, url := range []string{
		"mysql://u:secret@127.0.0.1:1/x", "postgres://u:se%zzcret@127.0.0.1:1/x", "postgres://u:secret@127.0.0.1:1/x",
	} {
		t.Setenv("DATABASE_URL", url)
		_, err := Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), "DATABASE_URL") || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: error is %v", url, err)
		}
	}
}

func TestMain(m *testing.M) { leaks.Main(m) }
