package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// A call of reflect's Method, or of MethodByName with a name that is no constant, makes the linker keep all exported methods of all types, in the
// whole program of a user: 8 MB of go-redis.
func TestTheLibraryDoesNotMakeTheLinkerKeepAllMethods(t *testing.T) {
	t.Parallel()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "program"), ".")
	dependencies, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.1000s", err, dependencies)
	}
	if found := regexp.MustCompile(`(?m)^github\.com/cacheguard/.*-> github\.com/cacheguard/\S+ <ReflectMethod>`).Find(dependencies); found != nil {
		t.Errorf("%s", found)
	}
	if !regexp.MustCompile(`(?m)^github\.com/cacheguard/go/cacheguard\.New -> `).Match(dependencies) {
		t.Error("there are no dependencies of this library")
	}
}
