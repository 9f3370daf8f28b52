package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/bench/internal/day"
)

// quiet is two hours in which nothing happens, but for what the test writes into it.
func quiet() []day.Second { return make([]day.Second, 7200) }

func TestTheTableHasTheMostAroundEachMarkAndOfTheDay(t *testing.T) {
	t.Parallel()
	plan := day.Plan{Seconds: 7200, Marks: []day.Mark{{At: 3600, Name: "failover"}}}
	ours, theirs := quiet(), quiet()
	ours[3599] = day.Second{Gets: 7, Loads: 2, AtOnce: 4, Waits: 1.5, Requests: 30, Mean: 0.25, Busiest: 0.5, GaveUp: 20}
	ours[3610] = day.Second{Loads: 3, GaveUp: 15}
	theirs[3899] = day.Second{Loads: 80, AtOnce: 90, Requests: 40, Mean: 0.01, Busiest: 0.02}
	ours[100] = day.Second{Gets: 9, Loads: 5, GaveUp: 7} // far from the mark: of the day alone
	theirs[3901] = day.Second{Loads: 800}                // the ten minutes are over
	var b strings.Builder
	if err := table(&b, plan, ours, theirs); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| by hand / cacheguard | Gets a second | loads a second | loads at once | a load waits, s | requests a second | a node, % | the busiest, % |\n",
		"| 1:00 failover | 7 | 80 / 3 | 90 / 4 | 1.5 | 40 / 30 | 1 / 25 | 2 / 50 |\n",
		"| the day | 9 | 800 / 5 | 90 / 4 | 1.5 | 40 / 30 | 1 / 25 | 2 / 50 |\n",
		"\n42 loads were given up", // 20 + 15 + 7
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestThePictureHasTheMostOfEachTwoMinutes(t *testing.T) {
	t.Parallel()
	seconds := quiet()[:300]
	seconds[119].Loads, seconds[120].Loads, seconds[299].Loads = 5, 7, 9
	got := most(seconds, func(s day.Second) float64 { return s.Loads })
	if len(got) != 3 || got[0] != 5 || got[1] != 7 || got[2] != 9 {
		t.Errorf("%v, want 5, 7 and 9: the last has a minute only", got)
	}
}

func TestADayWithoutPricesIsRefusedAndDrawsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prices := filepath.Join(dir, "compare.md")
	if err := os.WriteFile(prices, []byte("| | RTT, µs | lone, µs |\n|---|---|---|\n| **alone** | 18 | 97 |\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := run(prices, dir, &b); err == nil || !strings.Contains(err.Error(), `"alone", probe`) || b.Len() > 0 {
		t.Errorf("error %v, and it wrote %q", err, b.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "day.svg")); !os.IsNotExist(err) {
		t.Errorf("day.svg: %v", err)
	}
}
