package cacheguard

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
)

// The schedules of two versions of a program side by side. Each has a cache and leases of its own; both share one source and one intent.
// The model has two worlds, and keeps source and intent the same in both. The writer, which updates or puts, runs the first version. The
// intruder, which writes without an update, runs the other.

// sideRules are the parts of the protocol for versions that a mutation takes out.
type sideRules struct{ ownBegin, ownEnd, ownIntent, ownInvalidate bool }

// writeBeside makes what a step of the writer does in the world of the other version.
func writeBeside(w *world, step int, rule sideRules, bad trouble) {
	switch step {
	case 2:
		if !rule.ownBegin {
			w.cache, w.lease = nothing, 0
		}
		w.intent = !rule.ownIntent
	case 5:
		if bad == crash {
			return
		}
		if !rule.ownEnd {
			w.cache, w.lease = nothing, 0
		}
		w.intent = false
	default:
		writerStep(w, step, rules{}, bad)
	}
}

// sides are the participants: the writer, the readers with their versions, and the intruder, if there is one.
type sides struct {
	put     bool
	readers []int
	intrude bool
}

func (s sides) steps() []int {
	all := []int{writerSteps}
	for range s.readers {
		all = append(all, readerSteps)
	}
	if s.intrude {
		all = append(all, intruderSteps)
	}
	return all
}

// play runs a schedule, where 0 is a step of the writer, 1 and so on one of a reader, and the number behind theirs one of the intruder.
func (s sides) play(schedule []int, start int, rule sideRules, bad trouble) (wrong string, all [2]world, readers []aGet) {
	all = [2]world{{source: oldOne, cache: start}, {source: oldOne, cache: start}}
	readers = make([]aGet, len(s.readers))
	var written, intruded int
	for _, who := range schedule {
		switch {
		case who == 0:
			written++
			if s.put {
				put(&all[0], written, putRules{}, bad)
			} else {
				writerStep(&all[0], written, rules{}, bad)
			}
			writeBeside(&all[1], written, rule, bad)
		case who > len(readers):
			intruded++
			intrude(&all[1], intruded)
			if intruded == 1 || !rule.ownInvalidate {
				intrude(&all[0], intruded)
			}
		default:
			readers[who-1].next(&all[s.readers[who-1]], rules{}, written == writerSteps && bad != crash)
		}
	}
	for i, r := range readers {
		if r.late && r.got < newOne {
			return fmt.Sprintf("reader %d got version %d after the update", i+1, r.got), all, readers
		}
	}
	for i, w := range all {
		if w.cache != nothing && w.cache != w.source {
			return fmt.Sprintf("at rest cache %d has version %d, the source %d", i, w.cache, w.source), all, readers
		}
	}
	return "", all, readers
}

// check plays all schedules, and returns how many there are, and one with something wrong.
func (s sides) check(rule sideRules) (count int, wrong string) {
	for _, start := range []int{nothing, oldOne} {
		for _, bad := range []trouble{none, intentLost, crash} {
			orders(s.steps(), func(schedule []int) {
				count++
				if bads, _, _ := s.play(schedule, start, rule, bad); bads != "" && wrong == "" {
					wrong = fmt.Sprintf("%v, starting with %d, trouble %d: %s", schedule, start, bad, bads)
				}
			})
		}
	}
	return count, wrong
}

func TestNoScheduleOfVersionsSideBySideLeavesAStaleValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sides
		count int
	}{
		{sides{readers: []int{1}}, 6 * 210},
		{sides{put: true, readers: []int{1}}, 6 * 210},
		{sides{readers: []int{0}, intrude: true}, 6 * 13_860},
		{sides{put: true, readers: []int{1}, intrude: true}, 6 * 13_860},
		{sides{put: true, readers: []int{0, 1}}, 6 * 210_210},
	} {
		count, wrong := c.check(sideRules{})
		expect.Equal(t, "schedules", count, c.count)
		expect.Equal(t, "wrong", wrong, "")
	}
}

func TestEachPartOfWhatVersionsShareIsNeeded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sides
		rule sideRules
	}{
		"the removal when an update begins": {sides{readers: []int{1}}, sideRules{ownBegin: true}},
		"the removal when it ends":          {sides{readers: []int{1}}, sideRules{ownEnd: true}},
		"the intent":                        {sides{readers: []int{1}}, sideRules{ownIntent: true}},
		"invalidations of the other":        {sides{readers: []int{0}, intrude: true}, sideRules{ownInvalidate: true}},
		"the intent beside a put":           {sides{put: true, readers: []int{1}}, sideRules{ownIntent: true}},
	} {
		if _, wrong := c.check(c.rule); wrong == "" {
			t.Errorf("without %s nothing is wrong", name)
		} else {
			t.Logf("without %s: %s", name, wrong)
		}
	}
}

// sideStage runs a schedule with the scripts.
type sideStage struct {
	putStage
	sides
}

func (s *sideStage) step(who, step int, bad trouble) error {
	switch {
	case who == 0 && s.sides.put:
		return s.putStage.put(step, bad)
	case who == 0:
		return s.stage.write(step, bad)
	case who > len(s.readers):
		return s.putStage.intrude(step)
	}
	if s.hit = s.hit || step == 1 && s.cachedAt(s.slot) != nothing; s.hit {
		return nil
	}
	return s.read(step)
}

// TestTheScriptsKeepVersionsApartAsTheModelDoes has a writer of version 2, and a reader of version 1 or of none.
func TestTheScriptsKeepVersionsApartAsTheModelDoes(t *testing.T) {
	t.Parallel()
	for _, of := range []sides{
		{readers: []int{1}}, {put: true, readers: []int{1}}, {put: true, readers: []int{1}, intrude: true},
	} {
		for _, bad := range []trouble{none, intentLost, crash} {
			if !expect.Drawn(3) {
				continue
			}
			expect.Beside(t, fmt.Sprint(of, bad), func(t *testing.T) {
				theScriptsKeepVersionsApart(t, of, bad)
			})
		}
	}
}

func theScriptsKeepVersionsApart(t *testing.T, of sides, bad trouble) {
	t.Helper()
	f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour})
	own, other := protocol.VersionSlot(2), protocol.VersionSlot(1)
	every := 1
	if of.intrude {
		every = sparsely(29) // all of them take a minute
	}
	some(every, of.steps(), func(n int, order []int) {
		s := &sideStage{sides: of}
		s.stage = stage{fleet: f, key: rand.Text(), token: rand.Text(), source: "old", slot: other}
		s.putSlot, s.again = own, n%2 == 0
		if n%3 == 0 {
			s.slot = "" // of a reader without a version
		}
		_, worlds, readers := of.play(order, nothing, sideRules{}, bad)
		steps := make([]int, len(of.steps()))
		for _, who := range order {
			steps[who]++
			expect.Must(t, s.step(who, steps[who], bad))
		}
		what := fmt.Sprint(order, bad, s.again, s.slot)
		for i, slot := range []string{own, s.slot} {
			expect.Equal(t, what+": cached in "+slot, s.cachedAt(slot), worlds[i].cache)
			expect.Equal(t, what+": lease in "+slot, f.exists(protocol.LeaseKey(f.value(s.key)+slot)), worlds[i].lease != 0)
		}
		expect.Equal(t, what+": intent", f.exists(f.intent(s.key)), worlds[0].intent)
		expect.Equal(t, what+": refused", s.refused, readers[0].refused)
	})
}
