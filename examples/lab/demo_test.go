package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/leaks"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// TestMain is a process of the demo, too.
func TestMain(m *testing.M) {
	if isProcess() {
		if err := follow(context.Background(), os.Stdin, os.Stdout); !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaks.Main(m)
}

func TestTheDemoSeesWhatIsPromised(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"embedded Redis": func(*testing.T) string { return "" },
		"redis-server":   func(t *testing.T) string { return "redis://" + redistest.Start(t).Addr() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("REDIS_URL", url(t))
			var out, problems strings.Builder
			picture := filepath.Join(t.TempDir(), "demo.svg")
			if code := newProgram().Execute(t.Context(), []string{"-demo", "-short", "-picture", picture}, &out, &problems); code != 0 {
				t.Fatalf("exit code %d: %s\n%s", code, problems.String(), out.String())
			}
			if !strings.Contains(out.String(), "All as promised.") || strings.Count(out.String(), "→") != 9 {
				t.Errorf("it says\n%s", out.String())
			}
			drawing, err := os.ReadFile(picture)
			if err != nil || strings.Count(string(drawing), "→") != 9 || len(drawing) > 8<<10 {
				t.Errorf("%v, a picture of %d bytes", err, len(drawing))
			}
		})
	}
}

func TestTheDemoSaysWhatIsNotAsPromised(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := &demo{out: &out}
	d.see(true, "%d fail.", 0)
	d.see(false, "%d fail.", 1)
	if err := errors.Join(d.wrong...); err == nil || err.Error() != "NOT AS PROMISED: 1 fail." {
		t.Errorf("the error is %v", err)
	}
}
