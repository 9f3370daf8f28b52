package consistency

import (
	"cmp"
	"slices"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// event is a line of a log.
type event struct {
	kind             string // get, begun, updated or failed; and put after updated, if it was a Put
	who              int    // which writer of its process
	key              int
	version          int64
	called, returned int64
}

// readLog reads what a process has done.
func readLog(t *testing.T, path string) []event {
	t.Helper()
	return redistest.ReadLog(t, path, func(e *event) []any {
		return []any{&e.kind, &e.who, &e.key, &e.version, &e.called, &e.returned}
	})
}

func only(history []event, kind string) (some []event) {
	for _, e := range history {
		if e.kind == kind {
			some = append(some, e)
		}
	}
	return some
}

// committed counts an update that failed when it had written.
func committed(history []event) []event {
	all := slices.Clone(history)
	for i, e := range all {
		if e.kind == "failed" && e.version > 0 {
			all[i].kind = "updated"
		}
	}
	return all
}

// stale returns the Gets that returned a version older than one whose Update had returned before they began.
func stale(history []event) (found []event) {
	gets, updates := only(history, "get"), only(history, "updated")
	slices.SortFunc(gets, func(a, b event) int { return cmp.Compare(a.called, b.called) })
	slices.SortFunc(updates, func(a, b event) int { return cmp.Compare(a.returned, b.returned) })
	var least [keys]int64
	for _, g := range gets {
		for len(updates) > 0 && updates[0].returned < g.called {
			u := updates[0]
			least[u.key] = max(least[u.key], u.version)
			updates = updates[1:]
		}
		if g.version < least[g.key] {
			found = append(found, g)
		}
	}
	return found
}

// telling leaves out Gets that change no verdict: of all that returned the same version, the one that began last and the
// one that returned first say it all (Gibbons, Korach: Testing Shared Memories, SIAM J. Comput. 1997, call that a zone).
func telling(history []event) (short []event) {
	type zone struct{ key, version int64 }
	last, first := make(map[zone]event), make(map[zone]event)
	for _, e := range history {
		if e.kind != "get" {
			short = append(short, e)
			continue
		}
		z := zone{int64(e.key), e.version}
		if l, ok := last[z]; !ok || e.called > l.called {
			last[z] = e
		}
		if f, ok := first[z]; !ok || e.returned < f.returned {
			first[z] = e
		}
	}
	for z, e := range last {
		short = append(short, e)
		if e != first[z] {
			short = append(short, first[z])
		}
	}
	return short
}
