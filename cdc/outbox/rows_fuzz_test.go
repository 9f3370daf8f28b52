package outbox

import (
	"database/sql"
	"testing"
)

func FuzzRowOf(f *testing.F) {
	for _, row := range []string{"", "{}", `{"id":1}`, `{"id":18446744073709551615}`, `{"id":1e400}`, `{"a":null,"b":[1],"c":{"d":true}}`, `{"a":"\ud800"}`, "[1]", `{"a":1}{"b":2}`} {
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, text string) {
		row, err := rowOf(sql.NullString{String: text, Valid: true}, nil)
		if err != nil {
			return
		}
		for _, column := range row.Columns() {
			if !row.Has(column) {
				t.Errorf("%q: no column %q", text, column)
			}
			_, _ = row.Value(column)  // whatever it is, it is read without a panic
			_, _ = row.Int64(column)  // the same
			_, _ = row.Uint64(column) // the same
			_, _ = row.String(column) // the same
			_, _ = row.Bool(column)   // the same
			_, _ = row.Time(column)   // the same
		}
	})
}
