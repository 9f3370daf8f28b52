// Package replay takes the steps of runs that were drawn from the models of proof/model on what they are models of:
// real scripts in a real Redis, and the code that sends them. The states are compared after each step.
package replay

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/model"
)

// World is what a run is replayed on.
type World interface {
	Do(step Step)
	State() map[string]string // what the World knows of it, under the model's names
	Problem() string          // the first thing that was wrong; empty: nothing
}

// Verdict keeps the first thing that is wrong in a World.
type Verdict struct{ problem string }

// Wrong says that the code did something else than the model.
func (v *Verdict) Wrong(format string, args ...any) {
	if v.problem == "" {
		v.problem = fmt.Sprintf(format, args...)
	}
}

// Problem is the first thing that was wrong; empty: nothing.
func (v *Verdict) Problem() string { return v.problem }

// Run takes the steps of a run, and compares the states after each. It returns what is not as in the model; empty:
// nothing.
func Run(run []Step, w World) string {
	for i, step := range run {
		w.Do(step)
		if step.State != nil && w.Problem() == "" {
			for name, got := range w.State() {
				if want := step.State[name]; got != want && w.Problem() == "" {
					return fmt.Sprintf("%s is %s, and %s in the model, after these steps:\n%s", name, got, want, Sequence(run[:i+1]))
				}
			}
		}
		if w.Problem() != "" {
			return w.Problem() + ", in this run:\n" + Sequence(run[:i+1])
		}
	}
	return ""
}

// Archive is the file of testdata that has the runs which were drawn under that name, in the format of txtar.
func Archive(name string) string { return filepath.Join("testdata", name+".txtar") }

// Drawn are the runs of testdata that were drawn under that name.
func Drawn(t *testing.T, name string) map[string][]Step {
	t.Helper()
	archive, err := os.ReadFile(Archive(name))
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]Step{}
	for _, file := range strings.Split("\n"+string(archive), "\n-- ")[1:] {
		called, run, _ := strings.Cut(file, " --\n")
		runs[called] = Read(run)
	}
	if len(runs) < 10 {
		t.Fatalf("%d runs of %s", len(runs), name)
	}
	return runs
}

// Edit makes another script of a script.
type Edit func(*script.Script) *script.Script

// AsIs leaves a script as it is.
func AsIs(s *script.Script) *script.Script { return s }

// Agrees fails the test if a run that was drawn under that name goes otherwise in its world. It takes the steps of every other run, by
// chance, unless THOROUGH is set.
func Agrees(t *testing.T, name string, world func(run []Step, edit Edit) World) {
	t.Helper()
	for file, run := range Drawn(t, name) {
		if !expect.Drawn(2) {
			continue
		}
		if wrong := Run(run, world(run, AsIs)); wrong != "" {
			t.Errorf("%s: %s", file, wrong)
		}
	}
}

// FindsEvery fails the test if a mistake in the scripts changes none of the runs. A replay that finds nothing proves
// nothing. It tries a third of the mistakes, drawn anew each time, unless THOROUGH is set.
func FindsEvery(t *testing.T, name string, mistakes map[string]model.Mistake, world func(run []Step, edit Edit) World) {
	t.Helper()
	for what, mistake := range mistakes {
		if !expect.Drawn(3) {
			continue
		}
		applied := false
		edit := func(s *script.Script) *script.Script {
			if !strings.Contains(s.Source(), mistake[0]) {
				return s
			}
			applied = true
			return script.New(strings.Replace(s.Source(), mistake[0], mistake[1], 1))
		}
		found := ""
		for run := range maps.Values(Drawn(t, name)) {
			if found = Run(run, world(run, edit)); found != "" {
				break
			}
		}
		switch {
		case found == "" && !applied:
			t.Errorf("%s: the mistake is not made in any script", what)
		case found == "":
			t.Errorf("%s: the replays find nothing wrong", what)
		default:
			t.Logf("%s: %s", what, strings.SplitN(found, "\n", 2)[0])
		}
	}
}

// Bit is a bool as models print it.
func Bit(set bool) string {
	if set {
		return "1"
	}
	return "0"
}

// Names tells which number of a model a name in Redis has, such as a generation or an epoch: each has one, and the same
// one every time.
type Names map[string]string

// Call says that the model calls it by that number, and returns whether that can be.
func (n Names) Call(name, number string) bool {
	for other, called := range n {
		if (other == name) != (called == number) {
			return false
		}
	}
	n[name] = number
	return true
}
