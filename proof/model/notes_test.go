package model

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

const root = "../.."

func TestTheNotesOfTheModelsAreAboutTheScriptsAsTheyAre(t *testing.T) {
	t.Parallel()
	problems, err := CheckNotes(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestAScriptThatChangesIsNoticedUntilTheNotesAreWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, part := range append([]string{filepath.Dir(notesFile)}, folders...) {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(root, part))); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "internal/cache/protocol/lua/fill.lua")
	appendTo(t, script, "-- something else\n")
	appendTo(t, filepath.Join(dir, "mutex/lua/another.lua"), "return 1\n")
	changed := func() (count int) {
		problems, err := CheckNotes(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if strings.Contains(p, "fill.lua: has changed") || strings.Contains(p, "another.lua: not in the table") {
				count++
			}
		}
		return count
	}
	expect.Equal(t, "problems", changed(), 2)
	if err := WriteNotes(dir); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "problems after the notes were written", changed(), 0)
}

func TestEveryModelNamesWhatHoldsAndItsRules(t *testing.T) {
	t.Parallel()
	models, err := All()
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "models", len(models), 10)
	for _, m := range models {
		if len(m.Ends) == 0 || len(m.Large) == 0 {
			t.Errorf("%s.pml does not say within which bounds every run ends, or has no larger ones", m.Name)
		}
	}
}

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
