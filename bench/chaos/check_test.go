package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// event is a line of a log.
type event struct {
	kind, row        string
	version          int64
	called, returned int64
}

// span is from one moment to another.
type span struct{ from, to int64 }

func (s span) has(at int64) bool { return s.from <= at && at <= s.to }

// readLog reads what a process has done.
func readLog(t *testing.T, path string) []event {
	t.Helper()
	return redistest.ReadLog(t, path, func(e *event) []any {
		return []any{&e.kind, &e.row, &e.version, &e.called, &e.returned}
	})
}

func only(history []event, kind, row string) (some []event) {
	for _, e := range history {
		if e.kind == kind && (row == "" || e.row == row) {
			some = append(some, e)
		}
	}
	return some
}

// stale returns the Gets that returned a version older than one that had been written before they began, and how many more there
// are that a failover excuses.
func stale(history []event, failovers []span) (found []event, excused int) {
	gets, writes := only(history, "get", ""), only(history, "wrote", "")
	slices.SortFunc(gets, func(a, b event) int { return cmp.Compare(a.called, b.called) })
	slices.SortFunc(writes, func(a, b event) int { return cmp.Compare(a.returned, b.returned) })
	least := make(map[string]int64)
	for _, g := range gets {
		for len(writes) > 0 && writes[0].returned < g.called {
			least[writes[0].row] = max(least[writes[0].row], writes[0].version)
			writes = writes[1:]
		}
		switch {
		case g.version >= least[g.row]:
		case slices.ContainsFunc(failovers, func(s span) bool { return s.has(g.called) }):
			excused++
		default:
			found = append(found, g)
		}
	}
	return found, excused
}

// miscounted says what is wrong with a count: every increment that was reported is there, and none that nobody tried.
func miscounted(history []event, row string, count int64) error {
	tries, adds := int64(len(only(history, "tries", row))), int64(len(only(history, "adds", row)))
	switch {
	case count < adds:
		return fmt.Errorf("%s: the count is %d, and %d have counted: some were lost", row, count, adds)
	case count > tries:
		return fmt.Errorf("%s: the count is %d, and %d tried to count: some were made twice", row, count, tries)
	}
	return nil
}

func TestWhatIsWrongInALogIsFound(t *testing.T) {
	t.Parallel()
	wrote := event{"wrote", "a", 2, 10, 20}
	for name, c := range map[string]struct {
		got            event
		failovers      []span
		stale, excused int
	}{
		"old, after":       {event{"get", "a", 1, 21, 22}, nil, 1, 0},
		"old, beside":      {event{"get", "a", 1, 19, 30}, nil, 0, 0},
		"new, after":       {event{"get", "a", 2, 21, 22}, nil, 0, 0},
		"another row":      {event{"get", "b", 1, 21, 22}, nil, 0, 0},
		"in a failover":    {event{"get", "a", 1, 21, 22}, []span{{15, 25}}, 0, 1},
		"after a failover": {event{"get", "a", 1, 26, 27}, []span{{15, 25}}, 1, 0},
	} {
		if found, excused := stale([]event{c.got, wrote}, c.failovers); len(found) != c.stale || excused != c.excused {
			t.Errorf("%s: %d stale, %d excused", name, len(found), excused)
		}
	}
	counting := []event{{"tries", "lock", 0, 1, 1}, {"adds", "lock", 0, 1, 2}, {"tries", "lock", 0, 3, 3}}
	for count, good := range map[int64]bool{0: false, 1: true, 2: true, 3: false} {
		if err := miscounted(counting, "lock", count); (err == nil) != good {
			t.Errorf("a count of %d: %v", count, err)
		}
	}
}
