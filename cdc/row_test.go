package cdc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// aRow has a column of each type. The last one is not in the log.
func aRow() Row {
	columns := []string{"int", "uint", "huge", "text", "number", "bytes", "flag", "time", "null", "toast"}
	values := []any{int64(-7), uint64(7), uint64(1<<63 + 1), "shoes", "42", []byte("raw"), true, moment, nil, nil}
	return NewRow(columns, func(i int) (any, error) {
		if columns[i] == "toast" {
			return nil, ErrNotLogged
		}
		return values[i], nil
	})
}

func TestColumnsAreReadAsTheTypesThatTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	r := aRow()
	is(t, r.Int64, "int", -7)
	is(t, r.Int64, "uint", 7)
	is(t, r.Int64, "number", 42)
	is(t, r.Uint64, "huge", 1<<63+1)
	is(t, r.Uint64, "number", 42)
	is(t, r.String, "text", "shoes")
	is(t, r.String, "bytes", "raw")
	is(t, r.String, "int", "-7")
	is(t, r.String, "uint", "7")
	is(t, r.Bool, "flag", true)
	is(t, r.Time, "time", moment)
	is(t, r.Value, "null", nil)
	expect.Equal(t, "it is NULL", r.IsNull("null"), true)
	expect.Equal(t, "it is NULL", r.IsNull("int") || r.IsNull("toast") || r.IsNull("none"), false)
	expect.Equal(t, "the log has it", r.Has("null") && r.Has("int"), true)
	expect.Equal(t, "the log has it", r.Has("toast") || r.Has("none"), false)
	expect.Equal(t, "columns", len(r.Columns()), 10)
	expect.ErrorIs(t, r.Failed())
}

func TestTheFirstErrorOfARowNamesTheColumnAndStays(t *testing.T) {
	t.Parallel()
	for column, ask := range map[string]func(Row) error{
		"null":  func(r Row) error { _, err := r.Int64("null"); return err },
		"text":  func(r Row) error { _, err := r.Int64("text"); return err },
		"huge":  func(r Row) error { _, err := r.Int64("huge"); return err },
		"int":   func(r Row) error { _, err := r.Uint64("int"); return err },
		"flag":  func(r Row) error { _, err := r.String("flag"); return err },
		"uint":  func(r Row) error { _, err := r.Bool("uint"); return err },
		"time":  func(r Row) error { _, err := r.Bool("time"); return err },
		"bytes": func(r Row) error { _, err := r.Time("bytes"); return err },
		"none":  func(r Row) error { _, err := r.Value("none"); return err },
		"toast": func(r Row) error { _, err := r.Value("toast"); return err },
	} {
		r := aRow()
		err := ask(r)
		var wrong *ColumnError
		if !errors.As(err, &wrong) || wrong.Column != column {
			t.Errorf("%s: error %v", column, err)
		}
		_, _ = r.Int64("later") // what counts is the first one
		if r.Failed() == nil || r.Failed().Error() != err.Error() {
			t.Errorf("%s: the row has %v, want %v", column, r.Failed(), err)
		}
		expect.Equal(t, "the log has no value: "+column, errors.Is(err, ErrNotLogged), column == "toast")
	}
}

func TestARowThatIsNotThereHasNothing(t *testing.T) {
	t.Parallel()
	var r Row
	expect.Equal(t, "it is not there", r.IsZero(), true)
	if _, err := r.Int64("id"); err == nil {
		t.Error("it has a column")
	}
	expect.Equal(t, "the log has it", r.Has("id") || r.IsNull("id"), false)
	expect.ErrorIs(t, r.Failed())
}

func is[T comparable](t *testing.T, of func(string) (T, error), column string, want T) {
	t.Helper()
	got, err := of(column)
	expect.Equal(t, column, got, want)
	expect.ErrorIs(t, err)
}

func TestRowsNamesTheOldThingAndTheNewOne(t *testing.T) {
	t.Parallel()
	guard, err := cacheguard.New(redis.NewClient(&redis.Options{}), cacheguard.Config{}) // which asks for nothing
	expect.ErrorIs(t, err)
	defer guard.Close()
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{
		Name: "product", Load: func(context.Context, int64) (string, error) { return "", nil },
	})
	expect.ErrorIs(t, err)
	why := errors.New("no key")
	table := Rows("products", products, func(r Row) (int64, error) {
		if r.IsNull("id") {
			return 0, why
		}
		return r.Int64("id")
	})
	row := func(id any) Row { return NewRow([]string{"id"}, func(int) (any, error) { return id, nil }) }
	changes := table.Changed(Change{Op: Update, Old: row(int64(1)), New: row(int64(2))})
	expect.Equal(t, "keys", len(changes.Keys), 2)
	expect.Equal(t, "the old key", changes.Keys[0], products.Key(1))
	expect.Equal(t, "the new key", changes.Keys[1], products.Key(2))
	expect.Equal(t, "keys of an INSERT", len(table.Changed(Change{Op: Insert, New: row(int64(2))}).Keys), 1)
	bad := row(nil)
	expect.Equal(t, "keys of a row without one", len(table.Changed(Change{Op: Delete, Old: bad}).Keys), 0)
	expect.ErrorIs(t, bad.Failed(), why)
	expect.Equal(t, "the Guard", table.Kinds[0].Guard(), guard)
	var none *cacheguard.Cache[int64, string]
	expect.Equal(t, "the Guard of no Cache", none.Guard(), nil)
	expect.Equal(t, "a table without a Cache", Rows[int64, string]("products", none, nil).Changed == nil, true)
}
