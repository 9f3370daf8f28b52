package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Step is a step of a run, as the model prints it: "@WHAT ARGUMENTS ; IN WORDS", and perhaps "# NAME VALUE NAME VALUE …", the state after it.
type Step struct {
	Do    []string
	Says  string
	State map[string]string // nil: the model does not say
	names []string          // in the state, in their order
}

func (s Step) String() string { return strings.Join(s.Do, " ") }

// Number is the argument at that place.
func (s Step) Number(i int) int {
	n, _ := strconv.Atoi(s.Do[i])
	return n
}

// steps reads what SPIN prints.
func steps(said string) (all []Step) {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "@"); ok {
			do, says, _ := strings.Cut(text, " ; ")
			all = append(all, Step{Do: strings.Fields(do), Says: says})
		} else if text, ok := strings.CutPrefix(line, "# "); ok && len(all) > 0 {
			fields := strings.Fields(text)
			state, names := make(map[string]string, len(fields)/2), []string(nil)
			for i := 0; i+1 < len(fields); i += 2 {
				state[fields[i]], names = fields[i+1], append(names, fields[i])
			}
			all[len(all)-1].State, all[len(all)-1].names = state, names
		}
	}
	return all
}

// Sequence is the run for a person to read.
func Sequence(trail []Step) string {
	var text strings.Builder
	for i, step := range trail {
		fmt.Fprintf(&text, "%4d  %s\n", i+1, step.Says)
	}
	return text.String()
}

// Draw draws a run at random.
func (s *Searcher) Draw(ctx context.Context, m Model, defines []string, seed int) (trail []Step, err error) {
	dir, err := s.unpack(m.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	said, err := run(ctx, dir, "spin", append([]string{"-T", "-u5000", fmt.Sprintf("-n%d", seed)}, append(defines, m.Name+".pml")...)...)
	return steps(said), err
}
