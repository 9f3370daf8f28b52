package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// Only the address of Redis differs from the README.
func TestTheProgramOfTheReadmeMakesOneQuery(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	program := strings.Replace(string(source), "localhost:6379", redistest.Start(t).Addr(), 1)
	dir := t.TempDir()
	here, err := filepath.Abs("main.go")
	if err != nil {
		t.Fatal(err)
	}
	there, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {here: there}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{there: program, overlay: string(replaced)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"1000 callers, 1 query\n", "1000 callers, 0 query\n"} { // the second run finds it in Redis
		out, err := exec.CommandContext(t.Context(), "go", "run", "-overlay", overlay, ".").CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("the program printed %q (%v), want %q", out, err, want)
		}
	}
}
