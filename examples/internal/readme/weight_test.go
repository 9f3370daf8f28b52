package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

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
