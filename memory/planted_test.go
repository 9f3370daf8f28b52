package memory

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// differences are what may be wrong with a function: a write is forgotten, a key lasts longer, a message is, the clock differs.
func differences() map[string]func(r *run) {
	all := map[string]func(r *run){
		"the TTL is longer":      func(r *run) { r.later = 1 },
		"nobody is told":         func(r *run) { r.mute = true },
		"the clock is ahead":     func(r *run) { r.now, r.micros = r.now+1, r.micros+1000 },
		"the clock is ahead, µs": func(r *run) { r.micros++ },
	}
	for n := range 9 {
		all["a write is forgotten: "+itoa(int64(n+1))] = func(r *run) { r.skip = n + 1 }
	}
	return all
}

// readOnly are the scripts that write nothing.
var readOnly = []string{"time", "inspect", "say", "mutex/inspect"}

// TestADifferenceInAnyScriptIsFound plants each difference in each script, and plays what random calls have done on a real Redis.
func TestADifferenceInAnyScriptIsFound(t *testing.T) {
	t.Parallel()
	b, all := newBoth(t, redistest.Start(t).Client(t)), differences()
	var trails [][]step
	for kind := range kinds {
		for seed := range uint64(4) {
			if difference := b.walk(t, kind, 100+seed, 200, make(map[string]int)); difference != "" {
				t.Fatal(difference)
			}
			trails = append(trails, b.trail)
		}
	}
	defer b.end(t)
	if slices.ContainsFunc(trails, func(trail []step) bool { return b.differs(t, trail, nil) }) {
		t.Fatal("without a difference planted, there is one")
	}
	for _, name := range slices.Sorted(maps.Keys(b.texts)) {
		of := slices.DeleteFunc(slices.Clone(trails), func(trail []step) bool {
			return !slices.ContainsFunc(trail, func(s step) bool { return s.call.name == name })
		})
		isFound := func(plant func(r *run)) bool {
			planted := func(script string, r *run) {
				if script == name {
					plant(r)
				}
			}
			return slices.ContainsFunc(of, func(trail []step) bool { return b.differs(t, trail, planted) })
		}
		var found []string
		forgotten := slices.Contains(readOnly, name)
		for _, what := range slices.Sorted(maps.Keys(all)) {
			if forgotten && len(found) > 0 && expect.Samples(0, 1) == 0 {
				break // THOROUGH=1 tries all, and some are none: what a script does to have more written though memory is full
			}
			if strings.HasPrefix(what, "a write") && slices.Contains(readOnly, name) {
				continue
			}
			if isFound(all[what]) {
				found = append(found, what)
				forgotten = forgotten || strings.HasPrefix(what, "a write")
			}
		}
		if !forgotten || len(found) == 0 {
			t.Errorf("%s: only %q are found", name, found)
		}
		t.Logf("%-20s %d: %s", name, len(found), strings.Join(found, ", "))
	}
}
