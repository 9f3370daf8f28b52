package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func TestARolloutShowsNoOldValueAndAWarmedVersionLoadsLittleForCallers(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out, problems strings.Builder
	if code := new(settings).program().Execute(t.Context(), []string{"-short"}, &out, &problems); code != 0 { // it checks what it promises
		t.Fatal(code, problems.String(), out.String())
	}
	for _, text := range []string{"\n  the older cache ", "\n  5 % of the keys ", "\n  back to the older cache ", "\n  Version 2, warmed "} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is missing in\n%s", text, out.String())
		}
	}
}

func TestABusyMachineIsNamed(t *testing.T) {
	t.Parallel()
	s := newShop(10)
	s.queries.Store(10)
	for took, want := range map[time.Duration]string{15 * query: "", 70 * query: program.Busy + ": a query took 14 ms on average"} {
		s.took.Store(int64(took))
		if got := s.heldUp(); got != want {
			t.Errorf("%v: %q, want %q", took, got, want)
		}
	}
}

func TestFlagsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"-products", "-step"} {
		value := "1"
		if flag == "-step" {
			value += "ns"
		}
		var out, problems strings.Builder
		if code := new(settings).program().Execute(t.Context(), []string{flag, value}, &out, &problems); code != 2 || !strings.Contains(problems.String(), flag) {
			t.Error(code, problems.String())
		}
	}
}
