package main

import (
	"strings"
	"testing"

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
	for _, text := range []string{"\n  the older cache ", "\n  shadow for 20 % of the keys ", "\n  back to the older cache ", "0 old values", "\n  Version 2, warmed "} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is missing in\n%s", text, out.String())
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
