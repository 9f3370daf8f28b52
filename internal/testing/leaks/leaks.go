// Package leaks fails the tests of a package that leave goroutines behind.
package leaks

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// patience is how long goroutines have to end after the tests.
const patience = 30 * time.Second

// always may run: what listens to signals, once somebody has asked for them, and what writes a trace of the tests.
var always = []string{"os/signal.signal_recv", "runtime.ReadTrace"}

// Tests is a *testing.M, or what runs it between a beginning and an end.
type Tests interface{ Run() (code int) }

// Main is the TestMain of a package: it runs the tests and exits.
func Main(m Tests, mayRun ...string) { os.Exit(Run(m, mayRun...)) }

// Run runs the tests, and fails them if they leave goroutines behind. Goroutines that ran before are not theirs; a goroutine in one of the functions
// may go on.
func Run(m Tests, mayRun ...string) (code int) {
	before := goroutines()
	if code = m.Run(); code != 0 {
		return code
	}
	left := leftBehind(before, append(mayRun, always...), patience)
	for _, stack := range left {
		fmt.Fprintf(os.Stderr, "leaks: a goroutine is left behind: %s\n\n", stack)
	}
	return min(len(left), 1)
}

// leftBehind returns the stacks of goroutines that have begun since, and have not ended when the patience is over.
func leftBehind(before map[string]string, mayRun []string, patience time.Duration) (left []string) {
	for began, pause := time.Now(), time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		left = left[:0]
		for id, stack := range goroutines() {
			if _, old := before[id]; !old && !isIn(stack, mayRun) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Since(began) > patience {
			return left
		}
		time.Sleep(pause)
	}
}

func isIn(stack string, functions []string) bool {
	for _, function := range functions {
		if strings.Contains(stack, "\n"+function+"(") {
			return true
		}
	}
	return false
}

// goroutines are the stacks of all goroutines, by their numbers.
func goroutines() map[string]string {
	text := make([]byte, 1<<16)
	n := runtime.Stack(text, true)
	for ; n == len(text); n = runtime.Stack(text, true) {
		text = make([]byte, 2*len(text))
	}
	all := make(map[string]string)
	for stack := range strings.SplitSeq(string(text[:n]), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		all[id] = stack
	}
	return all
}
