package cacheguard

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
)

// The schedules of a Put, of readers, and of somebody who writes without an update and then invalidates.

const (
	newestOne     = newOne + 1 // written by the intruder
	intruderSteps = 2
)

// putRules are the parts of a Put's end that a mutation takes out.
type putRules struct{ noGenerationCheck, noDelete, noChecks bool }

// put makes a step of a Put.
func put(w *world, step int, rule putRules, bad trouble) {
	switch step {
	case 2: // begin_update
		w.generations++
		w.cache, w.lease, w.put, w.intent = nothing, w.generations, w.generations, true
	case 5: // put
		if bad == crash {
			return
		}
		store := w.lease == w.put && w.intent
		switch {
		case rule.noGenerationCheck:
			store = w.intent
		case rule.noChecks:
			store = true
		}
		if !rule.noDelete {
			w.cache, w.lease = nothing, 0
		}
		w.intent = false
		if store {
			w.cache = newOne
		}
	default:
		writerStep(w, step, rules{}, bad)
	}
}

// intrude makes a step of a writer without an update.
func intrude(w *world, step int) {
	switch step {
	case 1:
		w.source = newestOne
	case 2: // invalidate
		w.cache, w.lease = nothing, 0
	}
}

// playPut runs a schedule, and returns what is wrong with it. In it, 0 is a step of the Put, 1 to readers a step of that reader, and the
// next number one of the intruder.
func playPut(schedule []int, readers, start int, rule putRules, bad trouble) (wrong string, w world, all []aGet) {
	w = world{source: oldOne, cache: start}
	all = make([]aGet, readers)
	var written, intruded int
	for _, who := range schedule {
		switch {
		case who == 0:
			written++
			put(&w, written, rule, bad)
		case who > readers:
			intruded++
			intrude(&w, intruded)
		default:
			all[who-1].next(&w, rules{}, written == writerSteps && bad != crash)
		}
	}
	for i, r := range all {
		if r.late && r.got < newOne {
			return fmt.Sprintf("reader %d got version %d after the put", i+1, r.got), w, all
		}
	}
	if w.cache != nothing && w.cache != w.source {
		return fmt.Sprintf("at rest the cache has version %d, the source %d", w.cache, w.source), w, all
	}
	return "", w, all
}

// checkPut plays all schedules and returns how many there are, how many end with the value stored, and one with something wrong.
func checkPut(steps []int, readers int, rule putRules) (count, stored int, wrong string) {
	for _, start := range []int{nothing, oldOne} {
		for _, bad := range []trouble{none, intentLost, crash} {
			orders(steps, func(s []int) {
				count++
				bads, w, _ := playPut(s, readers, start, rule, bad)
				if w.cache == newOne {
					stored++
				}
				if bads != "" && wrong == "" {
					wrong = fmt.Sprintf("%v, starting with %d, trouble %d: %s", s, start, bad, bads)
				}
			})
		}
	}
	return count, stored, wrong
}

func TestNoScheduleOfReadersAndAPutLeavesAStaleValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		steps   []int
		readers int
		count   int
	}{
		{[]int{writerSteps, readerSteps}, 1, 6 * 210},
		{[]int{writerSteps, readerSteps, intruderSteps}, 1, 6 * 13_860},
		{[]int{writerSteps, readerSteps, readerSteps}, 2, 6 * 210_210},
	} {
		count, stored, wrong := checkPut(c.steps, c.readers, putRules{})
		expect.Equal(t, "schedules", count, c.count)
		expect.Equal(t, "some store", stored > 0, true)
		expect.Equal(t, "wrong", wrong, "")
	}
}

func TestEachPartOfAPutsEndIsNeeded(t *testing.T) {
	t.Parallel()
	for name, rule := range expect.Some(3, map[string]putRules{
		"generation check":         {noGenerationCheck: true},
		"deletion":                 {noDelete: true},
		"generation and intent":    {noChecks: true},
		"deletion and generation":  {noDelete: true, noGenerationCheck: true},
		"deletion and both checks": {noDelete: true, noChecks: true},
	}) {

		if _, _, wrong := checkPut([]int{writerSteps, readerSteps, intruderSteps}, 1, rule); wrong == "" {
			t.Errorf("without the %s nothing is wrong", name)
		} else {
			t.Logf("without the %s: %s", name, wrong)
		}
	}
}

// putStage runs a schedule of a Put with the scripts.
type putStage struct {
	stage
	generation string
	hit        bool // the reader's GET found a value
	putSlot    string
	again      bool // each script of the Put is sent twice, as if its first reply had been lost
}

func (s *putStage) put(step int, bad trouble) error {
	ctx, g := context.Background(), s.guards[0]
	for range 1 + map[bool]int{true: 1}[s.again] {
		var err error
		switch {
		case step == 2 && s.together:
			err = s.lockUpdate(ctx, s.value(s.key)+s.putSlot, time.Minute)
			s.generation = protocol.GenerationOf(s.token, s.fence)
		case step == 2:
			call := g.keys.BeginUpdate(s.value(s.key)+s.putSlot, s.token, g.writes.Notice(s.key), time.Minute)
			s.generation, err = call.Run(ctx, s.redis).Text()
		case step == 5 && bad != crash:
			value := "new"
			r := newRebuild(g, loadSpec[string]{load: load{policy: &g.ordinary}, loader: returns("")}.loadOf(g, s.key, scope{}, nil), nil, nil)
			r.token = s.token
			f := r.prepare(ctx, r.made(&value), s.generation, protocol.Stamp{}, nil)
			if s.together {
				call := g.keys.UnlockUpdate(s.release(), s.value(s.key)+s.putSlot, s.token, g.writes.Notice(s.key), time.Millisecond, f)
				err = call.Run(ctx, s.redis).Err()
			} else {
				err = g.keys.EndUpdate(s.value(s.key)+s.putSlot, s.token, g.writes.Notice(s.key), f).Run(ctx, s.redis).Err()
			}
		default:
			return s.write(step, bad)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *putStage) intrude(step int) error {
	if step == 1 {
		s.source = "newest"
		return nil
	}
	g := s.guards[0]
	return g.keys.Invalidate(g.keys.ValueKey(s.key), g.writes.Notice(s.key)).Run(context.Background(), s.redis).Err()
}

// cached is which version Redis has.
func (s *putStage) cached() int { return s.cachedAt(s.slot) }

// cachedAt is which version Redis has in a version slot.
func (s *putStage) cachedAt(slot string) int {
	raw, err := s.redis.Get(context.Background(), s.value(s.key)+slot).Bytes()
	if err != nil {
		return nothing
	}
	e, err := protocol.DecodeEntry(s.key, raw)
	expect.Must(s.t, err)
	return map[string]int{"old": oldOne, "new": newOne, "newest": newestOne}[string(e.Payload)]
}

func TestTheScriptsOfAPutDoWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	for _, bad := range []trouble{none, intentLost, crash} {
		expect.Beside(t, fmt.Sprint(bad), func(t *testing.T) {
			theScriptsOfAPutDoWhatTheModelDoes(t, bad)
		})
	}
}

func theScriptsOfAPutDoWhatTheModelDoes(t *testing.T, bad trouble) {
	t.Helper()
	f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour})
	some(sparsely(29), []int{writerSteps, readerSteps, intruderSteps}, func(n int, order []int) { // all of them take minutes
		s := &putStage{stage: stage{fleet: f, key: rand.Text(), token: rand.Text(), source: "old", together: n%3 == 0}, again: n%2 == 0}
		var steps [3]int
		_, w, all := playPut(order, 1, nothing, putRules{}, bad)
		for _, who := range order {
			steps[who]++
			var err error
			switch who {
			case 0:
				err = s.put(steps[who], bad)
			case 1:
				if s.hit = s.hit || steps[who] == 1 && s.cached() != nothing; !s.hit {
					err = s.read(steps[who])
				}
			case 2:
				err = s.intrude(steps[who])
			}
			expect.Must(t, err)
		}
		what := fmt.Sprint(order, bad, s.again, s.together)
		expect.Equal(t, what+": cached", s.cached(), w.cache)
		expect.Equal(t, what+": intent", f.exists(f.intent(s.key)), w.intent)
		expect.Equal(t, what+": lease", f.exists(f.lease(s.key)), w.lease != 0)
		expect.Equal(t, what+": refused", s.refused, all[0].refused)
	})
}
