package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// newDatabase opens a database for one test.
func newDatabase(t *testing.T, queryTime time.Duration) *database {
	t.Helper()
	db, err := openDatabase(queryTime)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestTheDatabaseIsFullOfProductsAndCountsItsQueries(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, 0)
	got, err := db.Product(t.Context(), 42)
	if want := (product{ID: 42, Name: "Product 42", Cents: 1654}); got != want || err != nil {
		t.Errorf("product 42 is %+v, %v, want %+v", got, err, want)
	}
	if _, err := db.Product(t.Context(), products); err != nil {
		t.Errorf("the last: %v", err)
	}
	if _, err := db.Product(t.Context(), products+1); !errors.Is(err, cacheguard.ErrNotFound) {
		t.Errorf("one that is not there: error is %v, want %v", err, cacheguard.ErrNotFound)
	}
	if got := db.queries(); got != 3 {
		t.Errorf("counted %d queries, want 3", got)
	}
}

func TestOnlySoManyQueriesRunAtATimeAndEachEndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, time.Hour)
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	context.AfterFunc(t.Context(), func() { cancel(nil) })
	failed := make(chan error)
	for range connections + 1 {
		go func() { // owner: the test; stop: ctx; joined by the receives below
			_, err := db.Product(ctx, 42)
			failed <- err
		}()
	}
	for db.queries() <= connections || len(db.pool) < connections { // until as many run as can, and one waits
		select {
		case err := <-failed:
			t.Fatalf("a query did not wait: %v", err)
		default:
			runtime.Gosched()
		}
	}
	cancel(gone)
	for range connections + 1 {
		if err := <-failed; !errors.Is(err, gone) {
			t.Errorf("error is %v, want %v", err, gone)
		}
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder) // where the file goes, except on Windows
	db, err := openDatabase(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(folder)
	if len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
