package postgres

import (
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/cacheguard/go/cdc"
)

func FuzzParse(f *testing.F) {
	for _, of := range []uint32{16, 17, 20, 21, 23, 26, 700, 701, 1082, 1114, 1184, 1700, 25, 0} {
		for _, text := range []string{"", "t", "1", "-9223372036854775808", "\\x00ff", "\\x0", "2026-11-23", "2026-11-23 12:00:00.5+01", "infinity", "0044-03-15 BC", "NaN"} {
			f.Add(of, text)
		}
	}
	f.Fuzz(func(t *testing.T, of uint32, text string) {
		v, err := kind{base: of}.parse(text)
		if err == nil && v == nil {
			t.Errorf("%q of type %d is NULL", text, of)
		}
	})
}

func FuzzParseSnapshot(f *testing.F) {
	for _, text := range []string{"", "1:1:", "10:20:10,14,15", "10:20", "10:20:,", ":20:", "10::", "a:b:c", "1:18446744073709551616:", "10:20:-1", "1:2:3:4", "10:20:20"} {
		f.Add(text, uint64(14))
	}
	f.Fuzz(func(t *testing.T, text string, xid uint64) {
		s, err := parseSnapshot(text)
		if err != nil {
			return
		}
		if xid >= s.next && !s.runs(xid) {
			t.Errorf("%q: transaction %d has begun after the snapshot, and does not run", text, xid)
		}
		for _, running := range s.running {
			if !s.runs(running) {
				t.Errorf("%q: transaction %d does not run", text, running)
			}
		}
	})
}

func FuzzRow(f *testing.F) {
	for _, format := range []byte{pglogrepl.TupleDataTypeText, pglogrepl.TupleDataTypeNull, pglogrepl.TupleDataTypeToast, pglogrepl.TupleDataTypeBinary, 0} {
		f.Add(uint32(20), format, []byte("42"), true)
		f.Add(uint32(1184), format, []byte("2026-11-23 12:00:00+01"), false)
	}
	f.Fuzz(func(t *testing.T, of uint32, format byte, data []byte, full bool) {
		r := newRelation(&pglogrepl.RelationMessage{Columns: []*pglogrepl.RelationMessageColumn{
			{Name: "id", DataType: of, Flags: 1}, {Name: "missing", DataType: of},
		}})
		r.kinds = []kind{{base: of}, {base: of}}
		tuple := &pglogrepl.TupleData{Columns: []*pglogrepl.TupleDataColumn{{DataType: format, Data: data}}}
		for _, row := range []cdc.Row{r.newRow(tuple, nil), r.newRow(nil, tuple), r.oldRow(tuple, full, nil), r.oldRow(nil, full, tuple), r.oldRow(nil, full, nil)} {
			for _, column := range append(row.Columns(), "none") {
				v, err := row.Value(column)
				if err == nil && v == nil && format != pglogrepl.TupleDataTypeNull {
					t.Errorf("%q of type %d in format %q is NULL", data, of, format)
				}
				_, _ = row.Int64(column)  // whatever it is, it is read without a panic
				_, _ = row.String(column) // the same
				_, _ = row.Time(column)   // the same
			}
		}
	})
}
