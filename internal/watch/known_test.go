package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestKindsOfNamesEndBeforeTheColonOrTheNumber(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"category:shoes": "category", "user-42": "user-", "all": "all", "42": "42", ":x": ":x", "": "", strings.Repeat("x", 999): strings.Repeat("x", longestKind),
	} {
		expect.Equal(t, name, KindOf(name), want)
	}
}

func TestWhatIsInvalidatedAndNoLoadHasHadIsCountedUntilOneHasIt(t *testing.T) {
	t.Parallel()
	var k Known
	k.Invalidated(t.Context(), []string{"category:shoes"}, nil)
	expect.Equal(t, "before there was a load", k.Count(), 0)
	expect.Equal(t, "kinds before there was a load", k.Kinds() == nil, true)
	k.Had()
	expect.Equal(t, "kinds of a load without names", fmt.Sprintf("%#v", k.Kinds()), "[]string{}")
	k.Invalidated(t.Context(), []string{"category:shoes", "categroy:shoes", "excepted:1", ""}, func(name string) bool { return name == "excepted:1" })
	k.Invalidated(t.Context(), []string{"categroy:hats"}, nil)
	expect.Equal(t, "unknown", times(&k), "map[category:1 categroy:2]")
	k.Had("category:boots", "all")
	k.Invalidated(t.Context(), []string{"category:shoes", "all"}, nil)
	expect.Equal(t, "unknown once a load has it", times(&k), "map[categroy:2]")
	expect.Equal(t, "kinds", fmt.Sprint(k.Kinds()), "[all category]")
	expect.Equal(t, "counted", k.Count(), 2)
}

func TestWhoOnlyWritesDoesNotJudgeWhatOthersLoad(t *testing.T) {
	t.Parallel()
	var k Known
	k.Written("category:shoes")
	k.Invalidated(t.Context(), []string{"list"}, nil)
	expect.Equal(t, "of a writer", k.Count(), 0)
	expect.Equal(t, "kinds of a writer", k.Kinds() == nil, true)
	k.Had("list")
	k.Invalidated(t.Context(), []string{"category:shoes"}, nil)
	expect.Equal(t, "before it is written", k.Count(), 1)
	expect.Equal(t, "when", k.Unknown()["category"].Last.IsZero(), false)
	k.Written("category:shoes")
	expect.Equal(t, "once it is written", k.Count(), 0)
	expect.Equal(t, "when, once it is written", len(k.Unknown()), 0)
}

func TestKindsAreBounded(t *testing.T) {
	t.Parallel()
	letters := func(n int) string { return strings.Map(func(c rune) rune { return c - '0' + 'a' }, fmt.Sprint(n)) }
	var k Known
	k.Had()
	for n := range 2 * mostUnknown {
		k.Invalidated(t.Context(), []string{letters(n)}, nil)
	}
	expect.Equal(t, "counted by name", len(k.Unknown()), mostUnknown+1)
	expect.Equal(t, "counted", k.Count(), 2*mostUnknown)
	for n := range 2 * mostKinds {
		k.Had(letters(n))
	}
	k.Invalidated(t.Context(), []string{"unknown"}, nil)
	expect.Equal(t, "of too many", k.Count(), 0)
	expect.Equal(t, "kinds, of too many", k.Kinds() == nil, true)
	expect.Equal(t, "remembered", len(*k.had.Load()) <= mostKinds, true)
}

// times is how often each unknown kind was invalidated, as a map is printed.
func times(k *Known) string {
	all := make(map[string]uint64)
	for kind, of := range k.Unknown() {
		all[kind] = of.Times
	}
	return fmt.Sprint(all)
}
