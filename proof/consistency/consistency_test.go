package consistency

import (
	"os"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// duration is CONSISTENCY, or short.
func duration() time.Duration {
	if long, err := time.ParseDuration(os.Getenv("CONSISTENCY")); err == nil {
		return long
	}
	return 4 * time.Second
}

func TestNoGetReturnsAnOlderVersionThanAnUpdateThatHadReturned(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "hasty")
	var rests []rest
	rounds := 2 + int(duration()/(10*time.Second))
	for round := range rounds {
		if round > 0 {
			s.begin()
		}
		s.rage(duration() / time.Duration(rounds))
		if round%2 == 0 {
			s.stop()
		} else {
			s.kill()
		}
		rests = append(rests, s.rest())
	}
	history := s.history()
	old, result := stale(history), check(promise, history)
	s.report(history, old, rests...)
	if len(old) > 0 || result != porcupine.Ok {
		t.Errorf("%d stale reads, the first %+v; porcupine: %s", len(old), old[:min(1, len(old))], result)
	}
	for round, r := range rests {
		if r.wrong > 0 {
			t.Errorf("round %d: at rest cache and database differ", round)
		}
	}
}

func TestTheSameFaultsMakeDeleteAfterWriteReturnOldVersions(t *testing.T) {
	t.Parallel()
	for range 10 { // mistakes show by chance
		s := newStorm(t, "by hand")
		s.rage(duration())
		s.kill()
		killed := s.rest()
		history := s.history()
		old := stale(history)
		s.report(history, old, killed)
		if len(old) > 0 && check(promise, history) == porcupine.Illegal {
			return
		}
	}
	t.Error("nothing old was read, or porcupine did not see it: the other test proves nothing")
}

func TestWithoutFaultsGetAndUpdateAreLinearizable(t *testing.T) {
	t.Parallel()
	s := newStorm(t, "patient")
	s.awaitSome()
	<-time.After(duration())
	s.stop()
	stopped := s.rest()
	history := s.history()
	s.report(history, stale(history), stopped)
	if result := check(linearizable, committed(history)); result != porcupine.Ok {
		t.Errorf("porcupine: %s", result)
	}
}

// report says what happened.
func (s *storm) report(history, old []event, rests ...rest) {
	s.Helper()
	gets, updates, failed := only(history, "get"), only(history, "updated"), only(history, "failed")
	kills, pauses := 0, 0
	for _, p := range s.all {
		pauses += len(p.pauses)
		if p.killed != 0 {
			kills++
		}
	}
	s.Logf("%d gets, %d stale; %d updates, %d of them Puts, %d failed", len(gets), len(old), len(updates), len(only(history, "put")), len(failed))
	s.Logf("%d kills, %d pauses; Redis: %d restarts, %d keys lost; wire: %d cuts, %d other faults",
		kills, pauses, len(s.restarts), s.evictions, s.cuts, s.faults)
	for _, r := range rests {
		s.Logf("at rest: %d of %d keys cached, %d wrong, %d in doubt", r.cached, keys, r.wrong, r.doubtful)
	}
}
