// Command licences lists the licence of every module outside this repository that a program compiles when it imports the library or another published
// module, and exits with 1 when one of them is not allowed (licence.go), or when it cannot tell.
//
// It reads the files in the folders of the packages and above them, within their modules: a folder that was copied from elsewhere may have a licence of its own.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(context.Background(), ".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// run lists the modules that the workspace in root uses.
func run(ctx context.Context, root string, out io.Writer) error {
	modules, err := used(ctx, root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		names, wrong := modules[name].licences()
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, wrong))
		}
		if _, failed := fmt.Fprintf(out, "%-50s %s\n", name, strings.Join(names, ", ")); failed != nil {
			return failed
		}
	}
	return err
}

// module is one of which some packages are compiled.
type module struct {
	Path, Version, Dir string
	Main               bool // of the workspace

	folders map[string]struct{} // of the packages, and above them
}

// used are the modules that the published ones compile, by path and version.
func used(ctx context.Context, root string) (map[string]module, error) {
	published, err := packages(ctx, root)
	if err != nil {
		return nil, err
	}
	listed, err := list(ctx, root, append([]string{"-deps", "-json=Dir,Module"}, published...)...)
	if err != nil {
		return nil, err
	}
	modules := make(map[string]module)
	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		var p struct {
			Dir    string
			Module *module
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return modules, nil
		} else if err != nil {
			return nil, err
		}
		if p.Module == nil || p.Module.Main { // the standard library, or ours
			continue
		}
		name := p.Module.Path + " " + p.Module.Version
		if _, met := modules[name]; !met {
			p.Module.folders = make(map[string]struct{})
			modules[name] = *p.Module
		}
		for dir := p.Dir; len(dir) >= len(p.Module.Dir); dir = filepath.Dir(dir) {
			modules[name].folders[dir] = struct{}{}
		}
	}
}

// packages are patterns for the packages of the published modules: nobody imports the others (docs/releasing.md).
func packages(ctx context.Context, root string) (patterns []string, err error) {
	listed, err := list(ctx, root, "-m", "-f", "{{.Path}}\t{{.Dir}}")
	for line := range strings.Lines(string(listed)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		switch part := strings.TrimPrefix(path, "github.com/cacheguard/go/"); strings.Split(part, "/")[0] {
		case "bench", "examples", "internal", "proof":
		default:
			patterns = append(patterns, filepath.Join(dir, "..."))
		}
	}
	return patterns, err
}

func list(ctx context.Context, root string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w", cmd, err)
	}
	return out, err
}
