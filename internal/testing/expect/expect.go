// Package expect has the assertions that tests of several packages share. They report and go on, but for Must: a test that
// cannot go on for another reason than an error says so itself.
package expect

import (
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"testing"
)

// Equal reports a test's failure unless got is want. what says in a few words what was looked at.
func Equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: %v, want %v", what, got, want)
	}
}

// ErrorIs reports a test's failure unless err is each of the targets, as errors.Is has it. A single nil target wants no error, and so
// do none.
func ErrorIs(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	if len(targets) == 0 {
		targets = []error{nil}
	}
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("error %v, want %v", err, target)
		}
	}
}

// Must ends the test if there is an error, without which it cannot go on.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// computing has a place for the one test of the program that computes.
var computing = make(chan struct{}, 1)

// Turn waits until no other test of the program has a turn; the returned function ends it. Tests that compute for long take turns: side by
// side, they would have each step of the many tests that wait for servers wait for all of them.
func Turn() (end func()) {
	computing <- struct{}{}
	return func() { <-computing }
}

// Samples returns how many samples a test takes of what is too much to try whole: few, or many if THOROUGH is set, as every night.
func Samples(few, many int) int {
	if os.Getenv("THOROUGH") != "" {
		return many
	}
	return few
}

// Some has the cases of a table that are tried: a few, by chance, or all if THOROUGH is set.
func Some[K comparable, V any](few int, table map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		left := Samples(few, len(table))
		for k, v := range table { // which begins somewhere else each time
			if left--; left < 0 || !yield(k, v) {
				return
			}
		}
	}
}

// Drawn reports whether a case of a large table is tried: one of so many, by chance, or each if THOROUGH is set.
func Drawn(of int) bool { return rand.IntN(Samples(of, 1)) == 0 }
