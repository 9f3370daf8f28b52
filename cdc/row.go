package cdc

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

var (
	// ErrNotLogged is matched by the error of a column whose value the database did not write into its log, such as most columns of
	// the old row under PostgreSQL's default REPLICA IDENTITY. Row.Has says so before.
	ErrNotLogged = errors.New("the log does not have its value")

	errNoColumn = errors.New("there is no such column")
	errNull     = errors.New("it is NULL")
)

// Row is a row of a table as the log has it: before a change or after it. The zero Row is one that is not there: there is no old row
// of an INSERT, and no new row of a DELETE.
//
// After an error of a row's methods, even one that Table.Changed ignores, the row's keys are not known, and the Kinds of the table are invalidated whole. Has
// and IsNull have no errors, so ask them first where a value may be missing.
type Row struct {
	columns []string
	value   func(i int) (any, error)
	failed  *error // the first; nil in a row that is not there
}

// NewRow makes a Row: for feeds, and for tests of a Table.Changed. value returns the value of the i-th column: nil for NULL, an int64,
// uint64, float64, bool, string, []byte or time.Time, or an error that matches ErrNotLogged.
func NewRow(columns []string, value func(i int) (any, error)) Row {
	return Row{columns: columns, value: value, failed: new(error)}
}

// IsZero reports whether the row is not there.
func (r Row) IsZero() bool { return r.failed == nil }

// Columns are the names of the columns, in the table's order.
func (r Row) Columns() []string { return slices.Clone(r.columns) }

// Has reports whether the log has the value of the column, which may be NULL.
func (r Row) Has(column string) bool {
	i := slices.Index(r.columns, column)
	if i < 0 {
		return false
	}
	_, err := r.value(i)
	return !errors.Is(err, ErrNotLogged)
}

// IsNull reports whether the column is NULL.
func (r Row) IsNull(column string) bool {
	i := slices.Index(r.columns, column)
	if i < 0 {
		return false
	}
	v, err := r.value(i)
	return err == nil && v == nil
}

// Value is the value of a column: nil for NULL, or an int64, uint64, float64, bool, string, []byte or time.Time. What Go has no type for, such as a
// numeric, a uuid or an array, is the database's text of it.
func (r Row) Value(column string) (any, error) {
	if r.IsZero() {
		return nil, &ColumnError{Column: column, Err: errors.New("the row is not there")}
	}
	i := slices.Index(r.columns, column)
	if i < 0 {
		return nil, r.fail(column, errNoColumn)
	}
	v, err := r.value(i)
	if err != nil {
		return nil, r.fail(column, err)
	}
	return v, nil
}

// Int64 is a column with whole numbers, or with their text.
func (r Row) Int64(column string) (int64, error) {
	return as(r, column, "a whole number", func(v any) (int64, bool) {
		switch v := v.(type) {
		case int64:
			return v, true
		case uint64:
			return int64(v), v <= 1<<63-1 // where it overflows, it is refused
		case string:
			n, err := strconv.ParseInt(v, 10, 64)
			return n, err == nil
		}
		return 0, false
	})
}

// Uint64 is a column with whole numbers that are not negative.
func (r Row) Uint64(column string) (uint64, error) {
	return as(r, column, "a whole number that is not negative", func(v any) (uint64, bool) {
		switch v := v.(type) {
		case int64:
			return uint64(v), v >= 0 // where it is negative, it is refused
		case uint64:
			return v, true
		case string:
			n, err := strconv.ParseUint(v, 10, 64)
			return n, err == nil
		}
		return 0, false
	})
}

// String is a column with text, or the decimal text of a whole number. Of a type that Go does not have, it is the database's text.
func (r Row) String(column string) (string, error) {
	return as(r, column, "text", func(v any) (string, bool) {
		switch v := v.(type) {
		case string:
			return v, true
		case []byte:
			return string(v), true
		case int64:
			return strconv.FormatInt(v, 10), true
		case uint64:
			return strconv.FormatUint(v, 10), true
		}
		return "", false
	})
}

// Bool is a column with truth values, or with the numbers 0 and 1 that stand for them.
func (r Row) Bool(column string) (bool, error) {
	return as(r, column, "a truth value", func(v any) (bool, bool) {
		switch v := v.(type) {
		case bool:
			return v, true
		case int64:
			return v == 1, v == 0 || v == 1
		case uint64:
			return v == 1, v <= 1
		}
		return false, false
	})
}

// Time is a column with points in time. One without a time zone is in UTC.
func (r Row) Time(column string) (time.Time, error) {
	return as(r, column, "a point in time", func(v any) (time.Time, bool) {
		t, ok := v.(time.Time)
		return t, ok
	})
}

// as is a column as a type of Go.
func as[T any](r Row, column, what string, convert func(any) (T, bool)) (T, error) {
	var none T
	v, err := r.Value(column)
	if err != nil {
		return none, err
	}
	if v == nil {
		return none, r.fail(column, errNull)
	}
	t, ok := convert(v)
	if !ok {
		return none, r.fail(column, fmt.Errorf("%T is not %s", v, what))
	}
	return t, nil
}

func (r Row) fail(column string, err error) error {
	err = &ColumnError{Column: column, Err: err}
	r.refuse(err)
	return err
}

// refuse notes the first error.
func (r Row) refuse(err error) {
	if *r.failed == nil {
		*r.failed = err
	}
}

// Failed is the first error of the row's methods: for feeds.
func (r Row) Failed() error {
	if r.IsZero() {
		return nil
	}
	return *r.failed
}

// ColumnError says what is wrong with a column.
type ColumnError struct {
	Column string
	Err    error
}

func (e *ColumnError) Error() string { return fmt.Sprintf("column %s: %v", e.Column, e.Err) }

func (e *ColumnError) Unwrap() error { return e.Err }

// RowError says that the keys and tags of a changed row are not known. The feed logs it, and invalidates the Kinds of the table whole. SelfCheck returns it where
// that can be known before. The column is in the text, and in a *ColumnError where a column is the reason.
type RowError struct {
	Table string
	Err   error
}

func (e *RowError) Error() string { return fmt.Sprintf("cdc: table %s: %v", e.Table, e.Err) }

func (e *RowError) Unwrap() error { return e.Err }
