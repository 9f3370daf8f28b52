package main

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func TestEachNightHasOneReportAndAFailedOneIsMadeUpFor(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out, problems strings.Builder
	if code := new(settings).program().Execute(t.Context(), []string{"-short"}, &out, &problems); code != 0 {
		t.Fatal(code, problems.String())
	}
	for text, times := range map[string]int{
		"writes the report": 2, "finds it written": 3, "fails: the disk is full": 1, "2 nights, one report in each": 1,
	} {
		if n := strings.Count(out.String(), text); n != times {
			t.Errorf("%q %d times, want %d, in\n%s", text, n, times, out.String())
		}
	}
}

func TestNightsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	var out, problems strings.Builder
	if code := new(settings).program().Execute(t.Context(), []string{"-nights", "0"}, &out, &problems); code != 2 || !strings.Contains(problems.String(), "-nights") {
		t.Error(code, problems.String())
	}
}
