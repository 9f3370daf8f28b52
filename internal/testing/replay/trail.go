package replay

import (
	"fmt"
	"strconv"
	"strings"
)

// Step is a step of a run, as a model prints it: "@WHAT ARGUMENTS ; IN WORDS", and perhaps "# NAME VALUE NAME VALUE …", the state after it.
type Step struct {
	Do    []string
	Says  string
	State map[string]string // nil: the model does not say
	names []string          // in the state, in their order
}

func (s Step) String() string { return strings.Join(s.Do, " ") }

// Arg is the argument at that place; empty: there is none.
func (s Step) Arg(i int) string {
	if i >= len(s.Do) {
		return ""
	}
	return s.Do[i]
}

// Number is the argument at that place.
func (s Step) Number(i int) int {
	n, _ := strconv.Atoi(s.Do[i])
	return n
}

// Read reads what SPIN prints, and what Write has written.
func Read(said string) (all []Step) {
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

// Write is the inverse of Read.
func Write(trail []Step) string {
	var text strings.Builder
	for _, step := range trail {
		fmt.Fprintf(&text, "@%s ; %s\n", step, step.Says)
		if step.State == nil {
			continue
		}
		text.WriteString("#")
		for _, name := range step.names {
			text.WriteString(" " + name + " " + step.State[name])
		}
		text.WriteString("\n")
	}
	return text.String()
}

// Sequence is the run for a person to read.
func Sequence(trail []Step) string {
	var text strings.Builder
	for i, step := range trail {
		fmt.Fprintf(&text, "%4d  %s\n", i+1, step.Says)
	}
	return text.String()
}
