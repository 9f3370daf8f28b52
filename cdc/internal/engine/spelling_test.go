package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
)

// TestAMappingThatMakesOneKeyOfAllTextsOfAColumnIsLeftAlone has several ways to do so, and those that do not.
func TestAMappingThatMakesOneKeyOfAllTextsOfAColumnIsLeftAlone(t *testing.T) {
	t.Parallel()
	guard, _ := newGuard(t, shared.Client(t))
	ofKey := func(keyOf func(cdc.Row) (string, error)) func(cdc.Change) cacheguard.Changes {
		return func(c cdc.Change) cacheguard.Changes {
			row := c.New
			if row.IsZero() {
				row = c.Old
			}
			key, _ := keyOf(row) // the feed has the error
			return cacheguard.Changes{Keys: []string{"k:" + key}}
		}
	}
	text := func(r cdc.Row) (string, error) { return r.String("k") }
	for name, c := range map[string]struct {
		table  cdc.Table
		of     Spelling
		spells bool
	}{
		"a text":             {cdc.Table{Changed: ofKey(text)}, Spelling{Own: "a", Other: "A", Of: "ci"}, true},
		"one that is exact":  {cdc.Table{Changed: ofKey(text), Exact: []string{"k"}}, Spelling{Own: "a", Other: "A", Of: "ci"}, false},
		"one in small":       {cdc.Table{Changed: ofKey(func(r cdc.Row) (string, error) { s, err := text(r); return strings.ToLower(s), err })}, Spelling{Own: "a", Other: "A", Of: "ci"}, false},
		"in small, with end": {cdc.Table{Changed: ofKey(func(r cdc.Row) (string, error) { s, err := text(r); return strings.ToLower(s), err })}, Spelling{Own: "a", Other: "a ", Of: "pad"}, true},
		"a number":           {cdc.Table{Changed: ofKey(func(r cdc.Row) (string, error) { n, err := r.Int64("k"); return fmt.Sprint(n), err })}, Spelling{Own: int64(1), Other: "01", Of: "int"}, false},
		"a number as a text": {cdc.Table{Changed: ofKey(text)}, Spelling{Own: int64(1), Other: "01", Of: "int"}, true},
		"one that is exact, of which some queries return the other": {cdc.Table{Changed: ofKey(text), Exact: []string{"k"}}, Zeros(6)[0], true},
		"a number with zeros": {cdc.Table{Changed: ofKey(func(r cdc.Row) (string, error) { n, err := r.Int64("k"); return fmt.Sprint(n), err })}, Zeros(6)[0], false},
		"a point in time":     {cdc.Table{Changed: ofKey(func(r cdc.Row) (string, error) { at, err := r.Time("k"); return at.Format(time.RFC3339), err })}, Typed("timestamptz")[0], true},
		"one in UTC":          {cdc.Table{Changed: ofKey(func(r cdc.Row) (string, error) { at, err := r.Time("k"); return at.UTC().Format(time.RFC3339), err })}, Typed("timestamptz")[0], false},
		"no key": {cdc.Table{Changed: ofKey(func(r cdc.Row) (string, error) {
			if _, err := text(r); err != nil {
				return "", err
			}
			return r.String("other")
		})}, Spelling{Own: "a", Other: "A", Of: "ci"}, false},
	} {
		c.table.Name = name
		e := newEngine(t, []*cacheguard.Guard{guard}, c.table)
		row := func(column string, value any) cdc.Row {
			return cdc.NewRow([]string{"k", "other"}, func(i int) (any, error) { return []any{value, "x"}[i], nil })
		}
		err := e.Tables[name].Spelled([]string{"k"}, row, func(string) []Spelling { return []Spelling{c.of} })
		expect.Equal(t, name, err != nil, c.spells)
		if err != nil {
			expect.ErrorIs(t, err, cdc.ErrSpellings)
		}
	}
}
