package model

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Play runs a model with the seed on scripts whose sources are edited, and returns the problem it found, if any.
type Play func(seed uint64, edit func(source string) string) (problem string)

// Mistake is put into a script: the second text in the place of the first.
type Mistake [2]string

// Expect plays that many seeds, thirty times as many if THOROUGH is set, or MODEL_RUNS, or the MODEL_SEED.
func (play Play) Expect(t *testing.T, runs int) {
	t.Helper()
	for _, seed := range Seeds(t, expect.Samples(runs, 30*runs)) {
		if problem := play.inTurn(seed, func(source string) string { return source }); problem != "" {
			t.Fatal(problem)
		}
	}
}

// ExpectToFind plays until it finds each of the mistakes; of a third of them, drawn anew each time, unless THOROUGH is set. A model that
// finds nothing proves nothing, unless it finds what is there. Rare has the seeds that found those for which it plays long: it begins
// with them.
func (play Play) ExpectToFind(t *testing.T, mistakes map[string]Mistake, rare map[string]uint64) {
	t.Helper()
	for name := range rare {
		if _, exists := mistakes[name]; !exists {
			t.Errorf("%q is no mistake", name)
		}
	}
	for name, mistake := range mistakes {
		if !expect.Drawn(3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			applied := false
			edit := func(source string) string {
				applied = applied || strings.Contains(source, mistake[0])
				return strings.Replace(source, mistake[0], mistake[1], 1)
			}
			all := Seeds(t, 2000)
			if seed, isRare := rare[name]; isRare {
				all = append([]uint64{seed}, all...)
			}
			for _, seed := range all {
				if problem := play.inTurn(seed, edit); problem != "" {
					t.Log(strings.SplitN(problem, "\n", 2)[0])
					if !applied {
						t.Error("the mistake is not made in any source")
					}
					return
				}
			}
			t.Error("the model finds nothing wrong")
		})
	}
}

func (play Play) inTurn(seed uint64, edit func(string) string) (problem string) {
	defer expect.Turn()()
	return play(seed, edit)
}

// Seeds draws that many, or as many as MODEL_RUNS says. MODEL_SEED is the only one if it is set.
func Seeds(t *testing.T, count int) []uint64 {
	t.Helper()
	number := func(name string) (n uint64, given bool) {
		text, given := os.LookupEnv(name)
		if !given {
			return 0, false
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n, true
	}
	if seed, given := number("MODEL_SEED"); given {
		return []uint64{seed}
	}
	if runs, given := number("MODEL_RUNS"); given {
		count = int(runs)
	}
	first := rand.Uint64N(1 << 40)
	all := make([]uint64, count)
	for i := range all {
		all[i] = first + uint64(i)
	}
	return all
}
