package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// files makes a tree of files by name.
func files(texts map[string]string) tree {
	fsys := fstest.MapFS{}
	for name, text := range texts {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree{fsys: fsys, files: slices.Sorted(maps.Keys(texts))}
}

// expect runs a check and compares what it finds with want: no problem where it is empty, else one that contains it.
func expect(t *testing.T, check func(tree) ([]problem, error), repository tree, want string) {
	t.Helper()
	found, err := check(repository)
	if err != nil {
		t.Fatal(err)
	}
	if want == "" {
		if len(found) > 0 {
			t.Errorf("found %v, want nothing", found)
		}
		return
	}
	if len(found) != 1 || !strings.Contains(found[0].String(), want) {
		t.Errorf("found %v, want one problem with %q", found, want)
	}
}

func TestRunChecksWhatGitTracksOrWouldTrack(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		".gitignore": "ignored.md\n",
		"ignored.md": "[nowhere](gone.md)",
		"README.md":  "[here](a/b.md)\n\n[nowhere](gone.md)\n",
		"a/b.md":     "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	found, err := run(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].file != "README.md" || found[0].line != 3 {
		t.Errorf("found %v, want the one link in line 3 of README.md", found)
	}
}

func TestRunFailsOutsideARepository(t *testing.T) {
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	if found, err := run(t.Context(), t.TempDir()); err == nil {
		t.Errorf("found %v, want an error", found)
	}
}

func TestPackageCommentsAreFoundInAnyFileOfThePackage(t *testing.T) {
	expect(t, checkPackageComments, files(map[string]string{
		"a/a.go":          "package a\n",
		"a/doc.go":        "// Package a is one.\npackage a\n",
		"b/b_test.go":     "package b\n",
		"c/testdata/c.go": "package c\n",
	}), "")
	expect(t, checkPackageComments, files(map[string]string{
		"a/a.go":      "//go:build linux\n\npackage a\n",
		"a/a_test.go": "// Package a is not told by its tests.\npackage a\n",
	}), "a/a.go:1: package a (a) has no package comment")
}

func TestMachinePaths(t *testing.T) {
	for text, want := range map[string]string{
		"see /" + "work/main":                    "/" + "work/main",
		"`/" + "root/.cache`":                    "/" + "root/.cache",
		"x=/" + "home/me/go":                     "/" + "home/me",
		"file:///" + "tmp/x":                     "/" + "tmp/x",
		"one\n(.." + "/" + "shared/style.md)":    "note.txt:2",
		"https://example.com/" + "home/me":       "",
		"a/" + "work/b and the /" + "workspace":  "",
		"binary \x00 /" + "work/main":            "",
		"GET /" + "homes and " + "shared/flight": "",
	} {
		expect(t, checkPaths, files(map[string]string{"note.txt": text}), want)
	}
}
