package scenario

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestEveryScenarioSaysWhatItComparesAndTakesPartInSmokeRuns(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	for _, s := range All() {
		main, smoke := 0, 0
		for _, m := range s.Metrics {
			if m.Main {
				main++
			}
		}
		for _, c := range s.Cases {
			if name := s.Name + ": " + c.Name; names[name] || len(c.Entries) == 0 {
				t.Errorf("%s is there twice, or empty", name)
			} else {
				names[name] = true
			}
			if c.Smoke {
				smoke++
			}
		}
		if main != 1 || smoke == 0 || s.About == "" {
			t.Errorf("%s: %d main metrics, %d cases for a smoke run", s.Name, main, smoke)
		}
	}
}

func TestOpenLoopAsksOnThoughNobodyIsAnswered(t *testing.T) {
	t.Parallel()
	const n = 50
	release, asked := make(chan struct{}), make(chan struct{}, n)
	wrong := errors.New("wrong")
	l := openLoop{perSecond: 1000, length: n * time.Millisecond, late: time.Nanosecond, ask: func(_ context.Context, i int) error {
		asked <- struct{}{}
		<-release
		if i == 0 {
			return wrong
		}
		return nil
	}}
	done := make(chan struct{})
	go func() { // owner: the test; ends when released; joined by receiving
		defer close(done)
		l.run(t.Context())
	}()
	for range n {
		<-asked
	}
	close(release)
	<-done
	if l.took.h.TotalCount() != n || l.slow.Load() != n || l.failed.Load() != 1 || !errors.Is(l.err(), wrong) {
		t.Fatal(l.took.h.TotalCount(), l.slow.Load(), l.failed.Load(), l.err())
	}
}

func TestArrivalsComeAsOftenAsTheyShould(t *testing.T) {
	t.Parallel()
	const n = 100_000
	for _, random := range []bool{false, true} {
		l := openLoop{perSecond: 1000, random: random}
		var last time.Duration
		for i := range n + 1 {
			now := l.after(i)
			if now < last {
				t.Fatalf("random %v: %v after %v", random, now, last)
			}
			last = now
		}
		if off := last.Seconds()/(n/1000) - 1; off < -0.05 || off > 0.05 { // 15 times what chance does
			t.Errorf("random %v: %d in %v", random, n, last)
		}
	}
}

func TestTogetherReturnsAnErrorOnceAllHaveEnded(t *testing.T) {
	t.Parallel()
	wrong, ended := errors.New("wrong"), make([]bool, 10)
	err := Together(t.Context(), len(ended), func(_ context.Context, i int) error {
		ended[i] = true
		if i == 3 {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) {
		t.Error(err)
	}
	for i, ok := range ended {
		if !ok {
			t.Error(i, "was not waited for")
		}
	}
}

func TestThousandsAreWrittenWithCommas(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1", 999: "999", 1000: "1,000", 1_234_056: "1,234,056"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
