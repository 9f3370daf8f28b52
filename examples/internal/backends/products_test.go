package backends

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// openDatabase opens the database of the environment, for one test: SQLite unless DATABASE_URL is set.
func openDatabase(t *testing.T, queryTime time.Duration) *ProductDB {
	t.Helper()
	db, err := Database(t.Context(), queryTime)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestTheDatabaseIsFullOfProducts(t *testing.T) {
	db := openDatabase(t, 0)
	var rows int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+db.table).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != Products {
		t.Errorf("%d rows, want %d", rows, Products)
	}
	got, err := db.Product(t.Context(), 42)
	if want := (Product{ID: 42, Name: "Product 42", Cents: 1654}); got != want || err != nil {
		t.Errorf("product 42 is %+v, %v, want %+v", got, err, want)
	}
}

func TestAProductThatIsNotThereIsNotFound(t *testing.T) {
	db := openDatabase(t, 0)
	if _, err := db.Product(t.Context(), Products+1); !errors.Is(err, cacheguard.ErrNotFound) {
		t.Errorf("error is %v, want %v", err, cacheguard.ErrNotFound)
	}
}

func TestEachQueryIsCounted(t *testing.T) {
	db := openDatabase(t, 0)
	for range 3 {
		_, _ = db.Product(t.Context(), Products+1) // that it failed does not matter
	}
	if got := db.Queries(); got != 3 {
		t.Errorf("counted %d queries, want 3", got)
	}
}

func TestASlowQueryEndsWithItsContext(t *testing.T) {
	db := openDatabase(t, time.Hour)
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	context.AfterFunc(t.Context(), func() { cancel(nil) })
	failed := make(chan error, 1)
	go func() { // owner: the test; stop: ctx; joined by the receive below
		_, err := db.Product(ctx, 42)
		failed <- err
	}()
	for db.Stats().InUse == 0 { // until the query runs
		select {
		case err := <-failed:
			t.Fatalf("the query did not wait: %v", err)
		default:
			runtime.Gosched()
		}
	}
	cancel(gone)
	if err := <-failed; !errors.Is(err, gone) {
		t.Errorf("error is %v, want %v", err, gone)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder) // where SQLite's file goes, except on Windows
	db, err := Database(t.Context(), 0)
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
		_, err := Database(t.Context(), 0)
		if err == nil || !strings.Contains(err.Error(), "DATABASE_URL") || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: error is %v", url, err)
		}
	}
}
