// Package expect has the assertions that tests of several packages share, and ways to try many cases. Assertions report and go on, but
// for Must: a test that cannot go on for another reason than an error says so itself.
package expect

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
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

// Fails reports a test's failure unless there is an error.
func Fails(tb testing.TB, err error) {
	tb.Helper()
	if err == nil {
		tb.Error("no error")
	}
}

// Says reports a test's failure unless the text, or the text of the error, has all of the parts.
func Says(tb testing.TB, text any, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(fmt.Sprint(text), part) {
			tb.Errorf("%q is not in: %v", part, text)
		}
	}
}

// Returns takes the results of a call, as in expect.Returns(t, "v", nil)(c.Get(ctx, 1)), and reports a test's failure unless they are as
// wanted: an error as errors.Is has it.
func Returns(tb testing.TB, want ...any) func(got ...any) {
	return func(got ...any) {
		tb.Helper()
		ok := len(got) == len(want)
		for i := 0; ok && i < len(got); i++ {
			target, failed := want[i].(error)
			err, _ := got[i].(error)
			ok = got[i] == want[i] || failed && errors.Is(err, target)
		}
		if !ok {
			tb.Errorf("returned %v, want %v", got, want)
		}
	}
}

// Err is the error of a call that returns something else, too.
func Err[T any](_ T, err error) error { return err }

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
func Some[K comparable, V any](few int, table map[K]V) map[K]V {
	some, left := make(map[K]V), Samples(few, len(table))
	for k, v := range table { // which begins somewhere else each time
		if left--; left < 0 {
			break
		}
		some[k] = v
	}
	return some
}

// Each tries each case of a table in a test of its own, beside the others.
func Each[V any](t *testing.T, table map[string]V, try func(t *testing.T, name string, of V)) {
	t.Helper()
	for name, of := range table {
		Beside(t, name, func(t *testing.T) { try(t, name, of) })
	}
}

// Beside runs a part of a test beside the other parts.
func Beside(t *testing.T, name string, part func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		part(t)
	})
}

// Drawn reports whether a case of a large table is tried: one of so many, by chance, or each if THOROUGH is set.
func Drawn(of int) bool { return rand.IntN(Samples(of, 1)) == 0 }
