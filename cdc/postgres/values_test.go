package postgres

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestValuesHaveTheirTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec(`CREATE TABLE "odd ""name" (id int PRIMARY KEY, small smallint, flag boolean, real double precision, exact numeric(10,2), bytes bytea, fixed char(5),
		day date, local timestamp, zoned timestamptz, uuid uuid, list int[], null_one text, long text)`)
	w.exec(`CREATE PUBLICATION "it's ""odd""" FOR TABLE "odd ""name"`)
	var mu sync.Mutex
	values := make(map[string]any)
	cfg := w.config(cdc.Table{Name: `public.odd "name`, Changed: func(c cdc.Change) cacheguard.Changes {
		mu.Lock()
		defer mu.Unlock()
		for _, column := range c.New.Columns() {
			if !c.New.Has(column) {
				values[column] = "not logged"
				continue
			}
			v, _ := c.New.Value(column) // the feed has the error
			values[column] = v
		}
		return cacheguard.Changes{}
	}})
	cfg.Publication = `it's "odd"`
	f, _ := w.run(cfg)
	w.CatchUp(f)
	w.exec(`INSERT INTO "odd ""name" VALUES (-7, 3, true, 1.5, 12.30, '\x00ff', 'ab', '2026-01-02', '2026-01-02 03:04:05.6', '2026-01-02 03:04:05+02',
		'6ba7b810-9dad-11d1-80b4-00c04fd430c8', '{1,2}', NULL, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 1000) n))`)
	w.CatchUp(f)
	expect.Equal(t, "trouble", f.Stats().Err, nil)
	mu.Lock()
	expect.Equal(t, "a long value", len(values["long"].(string)), 32_000) // a panic fails the test, too
	delete(values, "long")
	for column, want := range map[string]any{
		"id": int64(-7), "small": int64(3), "flag": true, "real": 1.5, "exact": "12.30", "bytes": "[0 255]", "fixed": "ab",
		"day": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), "local": time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC),
		"zoned": time.Date(2026, 1, 2, 1, 4, 5, 0, time.UTC), "uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "list": "{1,2}", "null_one": nil,
	} {
		if at, ok := values[column].(time.Time); ok {
			values[column] = at.UTC()
		}
		expect.Equal(t, column, fmt.Sprint(values[column]), fmt.Sprint(want))
	}
	mu.Unlock()
	w.exec(`UPDATE "odd ""name" SET flag = false`)
	w.CatchUp(f)
	mu.Lock()
	defer mu.Unlock()
	expect.Equal(t, "a long value that has not changed", fmt.Sprint(values["long"]), "not logged")
}

func TestALongValueThatHasNotChangedComesFromTheFullOldRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec("ALTER TABLE products REPLICA IDENTITY FULL")
	var mu sync.Mutex
	var names []int
	f, _ := w.run(w.config(cdc.Table{Name: "public.products", Changed: func(c cdc.Change) cacheguard.Changes {
		mu.Lock()
		defer mu.Unlock()
		name, _ := c.New.String("name") // the feed has the error
		names = append(names, len(name))
		return cacheguard.Changes{}
	}}))
	w.CatchUp(f)
	w.exec("INSERT INTO products VALUES (1, 'a', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 1000) n))")
	w.exec("UPDATE products SET category = 'b'")
	w.CatchUp(f)
	mu.Lock()
	defer mu.Unlock()
	expect.Equal(t, "the lengths", fmt.Sprint(names), "[32000 32000]")
}

func TestTransactionNumbersOf32BitsAreThoseNearestToTheSnapshot(t *testing.T) {
	t.Parallel()
	const round = 1 << 32
	for _, c := range []struct{ next, xid, want uint64 }{
		{1000, 999, 999},
		{1000, 1001, 1001},
		{3*round + 10, round - 5, 3*round - 5}, // before the last turn
		{3*round - 10, 5, 3*round + 5},         // after the next one
		{3*round + 10, 5, 3*round + 5},
	} {
		s := snapshot{next: c.next}
		expect.Equal(t, fmt.Sprint(c.xid, " at ", c.next), s.full(c.xid), c.want)
	}
	s, err := parseSnapshot("10:20:12,15")
	expect.ErrorIs(t, err)
	expect.Equal(t, "12 and 20 run, 11 and 19 do not", s.runs(12) && s.runs(20) && !s.runs(11) && !s.runs(19), true)
	for _, text := range []string{"", "1:x:", "1:2:x"} {
		if _, err := parseSnapshot(text); err == nil {
			t.Errorf("%q is a snapshot", text)
		}
	}
}

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
