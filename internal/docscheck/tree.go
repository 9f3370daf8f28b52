package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"
)

// A tree is the files of a repository, by their paths from its root.
type tree struct {
	fsys  fs.FS
	files []string
}

// openTree lists what git tracks in dir and what it would track. The owner of the directory may be someone else, as it
// is in many a container.
func openTree(ctx context.Context, dir string) (tree, error) {
	git := exec.CommandContext(ctx, "git", "-c", "safe.directory=*",
		"ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = dir
	git.Stderr = os.Stderr
	out, err := git.Output()
	if err != nil {
		return tree{}, fmt.Errorf("list the files of the repository: %w", err)
	}
	t := tree{fsys: os.DirFS(dir)}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if info, err := fs.Stat(t.fsys, name); err == nil && info.Mode().IsRegular() { // a deleted file is still listed
			t.files = append(t.files, name)
		}
	}
	return t, nil
}

// read returns the text of a file.
func (t tree) read(name string) (string, error) {
	text, err := fs.ReadFile(t.fsys, name)
	return string(text), err
}

// named returns the files whose base name matches pattern.
func (t tree) named(pattern string) []string {
	var names []string
	for _, name := range t.files {
		if ok, _ := path.Match(pattern, path.Base(name)); ok { // the patterns are constants, and well formed
			names = append(names, name)
		}
	}
	return names
}

// has says whether the tree has a file or a directory of that name.
func (t tree) has(name string) bool {
	if name == "." {
		return true
	}
	for _, file := range t.files {
		if file == name || strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}
