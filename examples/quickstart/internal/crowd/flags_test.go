package main

import (
	"io"
	"strings"
	"testing"

	"github.com/cacheguard/go/examples/internal/program"
)

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
		"-duration 580ms":      "-duration: 580ms",
		"-short -duration 1ms": "-duration: 1ms",
		"-fast":                "-fast",
		"quickly":              `"quickly"`,
	} {
		var problems strings.Builder
		if code := compared().Execute(t.Context(), strings.Fields(args), io.Discard, &problems); code != program.Usage {
			t.Errorf("%q: exit code %d, want %d", args, code, program.Usage)
		}
		if !strings.Contains(problems.String(), want) {
			t.Errorf("%q: it says %q, want %q in it", args, problems.String(), want)
		}
	}
}
