package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	defaults := settings{instances: 8, callers: 100, duration: 8 * time.Second, ttl: time.Second, query: 80 * time.Millisecond}
	with := func(change func(*settings)) settings {
		s := defaults
		change(&s)
		return s
	}
	for args, want := range map[string]settings{
		"":                            defaults,
		"-instances 2 -callers 3":     with(func(s *settings) { s.instances, s.callers = 2, 3 }),
		"-duration 5s -query 50ms":    with(func(s *settings) { s.duration, s.query = 5*time.Second, 50*time.Millisecond }),
		"-short":                      with(func(s *settings) { s.callers, s.duration, s.ttl = 25, 2*time.Second, 400*time.Millisecond }),
		"-short -callers 100":         with(func(s *settings) { s.duration, s.ttl = 2*time.Second, 400*time.Millisecond }),
		"-duration 3s -ttl 1s -short": with(func(s *settings) { s.callers, s.duration = 25, 3*time.Second }),
	} {
		got, err := parseFlags(strings.Fields(args), io.Discard)
		if got != want || err != nil {
			t.Errorf("%q: %+v, %v, want %+v", args, got, err, want)
		}
	}
}

func TestABadFlagIsNamed(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-instances 0":         "-instances: 0",
		"-instances 65":        "-instances: 65",
		"-instances many":      "-instances",
		"-callers 0":           "-callers: 0",
		"-callers -1":          "-callers: -1",
		"-ttl 99ms":            "-ttl: 99ms",
		"-ttl -1s":             "-ttl: -1s",
		"-query 0":             "-query: 0s",
		"-query 11s":           "-query: 11s",
		"-duration 0":          "-duration: 0s",
		"-duration 1080ms":     "-duration: 1.08s",
		"-short -duration 1ms": "-duration: 1ms",
		"-fast":                "-fast",
		"quickly":              `"quickly"`,
	} {
		_, err := parseFlags(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want one with %s", args, err, want)
		}
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	var help bytes.Buffer
	if _, err := parseFlags([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("error is %v, want %v", err, flag.ErrHelp)
	}
	for _, name := range []string{"-instances", "-callers", "-duration", "-ttl", "-query", "-short", "REDIS_URL", "DATABASE_URL"} {
		if !strings.Contains(help.String(), name) {
			t.Errorf("the help does not mention %s", name)
		}
	}
}
