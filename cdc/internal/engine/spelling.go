package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
)

// Spelling is a value as the feed has it, and another text by which the database finds the same row.
type Spelling struct {
	Own, Other any
	Of         string // what finds it so: a collation, or a type
	Shown      bool   // some queries return the other one, which Table.Exact then takes for the database's own
}

// alike are texts that collations take for one.
var alike = [][2]string{{"a", "A"}, {"a", "a "}, {"a", "\u00e1"}, {"ss", "\u00df"}, {"a", "\uff41"}, {"\u00e1", "a\u0301"}, {"a", "a\u200b"}, {"s", "\u017f"}, {"1", "01"}}

// Alike returns the texts that a collation takes for one, as the database says.
func Alike(ctx context.Context, collation string, same func(ctx context.Context, a, b string) (bool, error)) (all []Spelling, err error) {
	for _, pair := range alike {
		is, err := same(ctx, pair[0], pair[1])
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, Spelling{Own: pair[0], Other: pair[1], Of: "collation " + collation})
		}
	}
	return all, nil
}

// typed are values of types, by their names in the databases, that are equal under other texts, too.
var typed = map[string][2]any{
	"uuid": {"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"}, "citext": {"a", "A"}, "bpchar": {"a", "a "},
	"inet": {"10.0.0.1", "10.0.0.1/32"}, "cidr": {"10.0.0.0/8", "10/8"}, "inet6": {"::1", "0:0:0:0:0:0:0:1"}, "inet4": {"1.2.3.4", "001.2.3.4"},
	"macaddr": {"08:00:2b:01:02:03", "08-00-2b-01-02-03"}, "numeric": {"1", "1.0"}, "decimal": {"1", "1.0"}, "interval": {"1 day", "24:00:00"}, "time": {"03:04:05", "3:04:05"},
	"float4": {1.0, "1.0"}, "float8": {1.0, "1.0"}, "double": {1.0, "1.0"}, "char": {"a", "ab"}, "bit": {"1", "b1"}, "varbit": {"1", "b1"}, "bytea": {[]byte("a"), `\x61`},
	"year": {int64(1999), int64(99)}, "name": {strings.Repeat("a", 63), strings.Repeat("a", 64)},
	"date": anywhere, "timestamp": anywhere, "timestamptz": anywhere, "datetime": anywhere,
}

// anywhere is a point in time, in two zones.
var anywhere = func() [2]any {
	noon := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	return [2]any{noon, noon.In(time.FixedZone("", 3600))}
}()

// whole are the types of whole numbers, and exact those that are equal if their texts are, or whose values are no texts here.
var (
	whole = strings.Fields("int2 int4 int8 oid tinyint smallint mediumint int bigint integer")
	exact = strings.Fields("text varchar enum json xml bool set binary varbinary blob")
	shown = strings.Fields("bpchar inet") // without spaces and mask, or with them: as a query casts, and by the driver
)

// Typed returns the texts that a type takes for one. Of one that is not known, some text may be.
func Typed(name string) []Spelling {
	of := "type " + name
	switch pair, known := typed[name]; {
	case slices.Contains(exact, name):
		return nil
	case slices.Contains(whole, name):
		return []Spelling{{Own: int64(1), Other: "01", Of: of}}
	case known:
		return []Spelling{{pair[0], pair[1], of, slices.Contains(shown, name)}}
	}
	return []Spelling{{Own: "1", Other: " 1", Of: of}}
}

// Labels are the labels of MariaDB's enum('…','…') or set that are numbers: a query for a number finds those whose place it is.
func Labels(is string) (all []Spelling) {
	kind, labels, _ := strings.Cut(strings.TrimSuffix(is, "')"), "('")
	for i, label := range strings.Split(labels, "','") {
		place := int64(i + 1)
		if kind == "set" {
			place = 1 << i
		}
		if n, err := strconv.ParseInt(label, 10, 64); err == nil && n != place {
			all = append(all, Spelling{Own: label, Other: strconv.FormatInt(place, 10), Of: "a label that is a number"})
		}
	}
	return all
}

// Zeros are the texts of a ZEROFILL: drivers that make a number of it show it without the zeros.
func Zeros(digits int) []Spelling {
	return []Spelling{{fmt.Sprintf("%0*d", max(digits, 2), 1), "1", "ZEROFILL", true}}
}

// Spelled returns the columns of keys and tags that have other texts than the feed's: a key of the service that is another text of the same value finds the same row, and nothing
// invalidates its entry. What Changed makes the same of both counts as one. row makes a row that does not exist, but for a value.
func (t *Table) Spelled(columns []string, row func(column string, value any) cdc.Row, of func(column string) []Spelling) error {
	var problems []error
	for _, column := range columns {
		for _, s := range of(column) {
			if slices.Contains(t.Exact, column) && !s.Shown {
				continue
			}
			own, err := t.names(func() cdc.Row { return row(column, s.Own) })
			if err != nil {
				continue // Try says so, or it is a value that is no key
			}
			if other, err := t.names(func() cdc.Row { return row(column, s.Other) }); err == nil && !slices.Equal(own, other) {
				problems = append(problems, &cdc.RowError{Table: t.Name, Err: &cdc.ColumnError{Column: column, Err: s.err()}})
				break
			}
		}
	}
	return errors.Join(problems...)
}

func (s Spelling) err() error {
	mend := "CacheConfig.Key, or cdc.Exactly in the loader and Table.Exact"
	if s.Shown {
		mend = "or a key function here, and in the loader, that makes one of both, as queries return either"
	}
	return fmt.Errorf("%w: by %q the row of %q, of %s (mend with: a key of a type that has one text, %s)", cdc.ErrSpellings, texted(s.Other), texted(s.Own), s.Of, mend)
}

func texted(v any) string {
	if b, is := v.([]byte); is {
		return string(b)
	}
	return fmt.Sprint(v)
}

// names are the keys and tags that changes of a row make old.
func (t *Table) names(row func() cdc.Row) ([]string, error) {
	var all cacheguard.Changes
	for _, c := range []cdc.Change{{Op: cdc.Insert, New: row()}, {Op: cdc.Delete, Old: row()}} {
		changes, err := t.Changes(c)
		if err != nil {
			return nil, err
		}
		all.Keys, all.Tags = append(all.Keys, changes.Keys...), append(all.Tags, changes.Tags...)
	}
	return append(append(all.Keys, ""), all.Tags...), nil
}
