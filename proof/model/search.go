package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/cacheguard/go/internal/testing/replay"
)

// How a search goes through the runs.
type how struct {
	flags []string // for the compiler
	args  []string
}

var (
	everyState   = how{flags: []string{"-DSAFETY"}}
	shortestRun  = how{flags: []string{"-DSAFETY", "-DBFS"}} // breadth first: its trail is the shortest
	endlessLoops = how{flags: []string{"-DNP", "-DNOFAIR"}, args: []string{"-l"}}
)

// Found is what a search has found.
type Found struct {
	States int
	Wrong  string        // the promise that a run breaks; empty: none does
	Trail  []replay.Step // of that run
}

// Searcher has SPIN and a C compiler make searches.
type Searcher struct {
	Dir string // for files of its own
}

// Holds searches all runs within the bounds.
func (s *Searcher) Holds(ctx context.Context, m Model, b Bounds) (Found, error) {
	return s.search(ctx, m, b.Defines, everyState)
}

// Ends looks for a run that goes on for ever.
func (s *Searcher) Ends(ctx context.Context, m Model, b Bounds) (Found, error) {
	return s.search(ctx, m, b.Defines, endlessLoops)
}

// Without looks for the shortest run that breaks a promise when the rule is not kept.
func (s *Searcher) Without(ctx context.Context, m Model, r Rule) (Found, error) {
	return s.search(ctx, m, append([]string{"-DBROKEN=" + r.Name}, r.Defines...), shortestRun)
}

var (
	errorLine  = regexp.MustCompile(`(?m)^pan:1: (.*) \(at depth \d+\)$`)
	statesLine = regexp.MustCompile(`(?m)^ *(\d+) states, stored`)
	errorsLine = regexp.MustCompile(`errors: (\d+)`)
)

func (s *Searcher) search(ctx context.Context, m Model, defines []string, h how) (found Found, err error) {
	dir, err := s.unpack(m.Name)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source := m.Name + ".pml"
	if _, err := run(ctx, dir, "spin", append([]string{"-a"}, append(defines, source)...)...); err != nil {
		return found, err
	}
	compile := append([]string{"-O0", "-w", "-DMEMLIM=3500", "-o", "pan", "pan.c"}, h.flags...)
	if _, err := run(ctx, dir, "cc", compile...); err != nil {
		return found, err
	}
	out, err := run(ctx, dir, "./pan", append([]string{"-m500000", "-w20", "-n"}, h.args...)...)
	if err != nil {
		return found, err
	}
	states, count := statesLine.FindStringSubmatch(out), errorsLine.FindStringSubmatch(out)
	if states == nil || count == nil || strings.Contains(out, "max search depth too small") || strings.Contains(out, "out of memory") {
		return found, fmt.Errorf("the search of %s did not end:\n%s", m.Name, out)
	}
	if found.States, err = strconv.Atoi(states[1]); err != nil || count[1] == "0" {
		return found, err
	}
	found.Wrong = "it goes on for ever"
	if line := errorLine.FindStringSubmatch(out); line != nil {
		found.Wrong = line[1]
	}
	said, err := run(ctx, dir, "spin", append([]string{"-t", "-T"}, append(defines, source)...)...)
	if err != nil {
		return found, err
	}
	found.Trail = replay.Read(said)
	if promise := brokenPromise(dir, said); promise != "" {
		found.Wrong = promise
	} else if strings.HasPrefix(found.Wrong, "invalid end state") {
		found.Wrong = "somebody waits for ever"
	}
	return found, nil
}

// unpack writes the model to a folder of its own.
func (s *Searcher) unpack(name string) (dir string, err error) {
	if dir, err = os.MkdirTemp(s.Dir, name); err != nil {
		return "", err
	}
	for _, file := range []string{name + ".pml", "common.h"} {
		text, err := files.ReadFile(file)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return string(out), nil
}

var assertLine = regexp.MustCompile(`\.pml:(\d+), Error: assertion violated`)

// brokenPromise is the comment behind the assertion that failed.
func brokenPromise(dir, said string) string {
	at := assertLine.FindStringSubmatch(said)
	if at == nil {
		return ""
	}
	sources, _ := filepath.Glob(filepath.Join(dir, "*.pml"))
	text, err := os.ReadFile(sources[0])
	number, atoiErr := strconv.Atoi(at[1])
	lines := strings.Split(string(text), "\n")
	if err != nil || atoiErr != nil || number > len(lines) {
		return ""
	}
	line := lines[number-1]
	if _, comment, ok := strings.Cut(line, "/* "); ok {
		comment, _, _ = strings.Cut(comment, " */")
		return comment
	}
	return strings.TrimSpace(line)
}
