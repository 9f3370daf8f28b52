package mysql

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
)

// TestKeysOfUnsignedColumnsAreTheTextsOfAQuery has the numbers around each sign bit, in tables whose other columns may be taken for the key's neighbours in the log.
func TestKeysOfUnsignedColumnsAreTheTextsOfAQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	types := map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
	var mu sync.Mutex
	seen := make(map[string][]string)
	var tables []cdc.Table
	for is := range types {
		for _, sign := range []string{"", "unsigned"} {
			table := "t_" + is + sign
			w.exec(fmt.Sprintf("CREATE TABLE %s (y year, d decimal(5,2) unsigned, f float unsigned, n int, k %s %s PRIMARY KEY, z year, r double)", table, is, sign))
			tables = append(tables, cdc.Table{Name: w.name + "." + table, Changed: func(c cdc.Change) cacheguard.Changes {
				mu.Lock()
				defer mu.Unlock()
				for _, row := range []cdc.Row{c.Old, c.New} {
					if !row.IsZero() && !c.Committed.IsZero() && row.Has("k") {
						k, _ := row.String("k") // the feed has the error
						seen[table+" "+string(c.Op)] = append(seen[table+" "+string(c.Op)], k)
					}
				}
				return cacheguard.Changes{}
			}})
		}
	}
	f, _ := w.run(w.config(tables...))
	w.CatchUp(f)
	for is, bits := range types {
		for _, sign := range []string{"", "unsigned"} {
			table, most := "t_"+is+sign, uint64(1)<<(bits-1)
			values := []string{"0", fmt.Sprint(most - 1), fmt.Sprintf("-%d", most), "-1"}
			if sign != "" {
				values = []string{"0", fmt.Sprint(most - 1), fmt.Sprint(most), fmt.Sprint(most + 1), fmt.Sprint(most - 1 + most)}
			}
			for _, image := range []string{"MINIMAL", "FULL"} {
				mu.Lock()
				clear(seen)
				mu.Unlock()
				w.exec("SET SESSION binlog_row_image = '"+image+"'", "INSERT INTO "+table+" (n, y, k) VALUES (0, 2026, "+strings.Join(values, "), (0, 2026, ")+")", "UPDATE "+table+" SET n = n + 1",
					"DELETE FROM "+table, "SET SESSION binlog_row_image = DEFAULT")
				w.CatchUp(f)
				slices.Sort(values)
				for _, op := range []cdc.Op{cdc.Insert, cdc.Update, cdc.Delete} {
					mu.Lock()
					got := slices.Clone(seen[table+" "+string(op)])
					mu.Unlock()
					slices.Sort(got)
					expect.Equal(t, table+" "+image+" "+string(op), strings.Join(slices.Compact(got), " "), strings.Join(values, " "))
				}
			}
		}
	}
	expect.Equal(t, "rows without keys", f.Stats().Unmapped, 0)
}
