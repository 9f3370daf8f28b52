package cdc

import (
	"errors"
	"testing"
	"time"

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
		if wrong, ok := errors.AsType[*ColumnError](err); !ok || wrong.Column != column {
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
