package main

import (
	"strings"
	"testing"
	"time"
)

func TestWhatIsCompiledIsShownAndWhatFailsIsKept(t *testing.T) {
	t.Parallel()
	said := "internal/cpu\ngithub.com/redis/go-redis/v9\n# example.com/broken\nbroken.go:1:1: expected 'package'\n"
	for name, c := range map[string]struct {
		every time.Duration
		want  []string
	}{
		"a terminal": {0, []string{"Compiling cacheguard", "\r    1 packages, now internal/cpu", "\r    2 packages, now github.com/redis/go-redis/v9", "2 packages in"}},
		"a file":     {time.Nanosecond, []string{"Compiling cacheguard", "\n    1 packages, now internal/cpu\n", "2 packages in"}},
	} {
		var out strings.Builder
		problems := follow(strings.NewReader(said), &out, c.every)
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in %q", name, want, out.String())
			}
		}
		if want := "# example.com/broken\nbroken.go:1:1: expected 'package'\n"; problems != want {
			t.Errorf("%s: problems %q, want %q", name, problems, want)
		}
	}
}

func TestWhatIsCompiledAlreadySaysNothing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if problems := follow(strings.NewReader(""), &out, 0); problems != "" || out.Len() > 0 {
		t.Errorf("%q, %q", problems, out.String())
	}
}
