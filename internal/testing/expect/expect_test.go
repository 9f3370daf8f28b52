package expect_test

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// reports is a testing.TB that keeps what is reported.
type reports struct {
	testing.TB
	lines []string
}

func (r *reports) Helper() {}

func (r *reports) Errorf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *reports) Error(args ...any) { r.lines = append(r.lines, fmt.Sprint(args...)) }

func (r *reports) Fatal(args ...any) { r.lines = append(r.lines, "ended: "+fmt.Sprint(args...)) }

func (r *reports) want(t *testing.T, lines ...string) {
	t.Helper()
	if fmt.Sprint(r.lines) != fmt.Sprint(lines) {
		t.Errorf("reported %q, want %q", r.lines, lines)
	}
}

func TestEqualReportsWhatDiffers(t *testing.T) {
	r := &reports{TB: t}
	expect.Equal(r, "loads", 1, 1)
	r.want(t)
	expect.Equal(r, "loads", 2, 1)
	r.want(t, "loads: 2, want 1")
}

func TestErrorIsLooksThroughWrapping(t *testing.T) {
	r := &reports{TB: t}
	expect.ErrorIs(r, fmt.Errorf("reading: %w", io.EOF), io.EOF)
	expect.ErrorIs(r, nil, nil)
	expect.ErrorIs(r, nil)
	r.want(t)
	expect.ErrorIs(r, io.EOF, nil)
	expect.ErrorIs(r, io.EOF)
	expect.ErrorIs(r, errors.Join(io.EOF, io.ErrNoProgress), io.EOF, io.ErrShortWrite)
	r.want(t, "error EOF, want <nil>", "error EOF, want <nil>", "error EOF\nmultiple Read calls return no data or error, want short write")
}

func TestMustEndsATestThatHasAnError(t *testing.T) {
	r := &reports{TB: t}
	expect.Must(r, nil)
	r.want(t)
	expect.Must(r, io.EOF)
	r.want(t, "ended: EOF")
}

func TestFailsWantsAnError(t *testing.T) {
	r := &reports{TB: t}
	expect.Fails(r, io.EOF)
	r.want(t)
	expect.Fails(r, expect.Err(1, nil))
	r.want(t, "no error")
}

func TestSaysWantsAllParts(t *testing.T) {
	r := &reports{TB: t}
	expect.Says(r, "one, two", "one", "two")
	expect.Says(r, io.EOF, "EOF")
	r.want(t)
	expect.Says(r, "one, two", "one", "three")
	expect.Says(r, expect.Err(1, nil), "EOF")
	r.want(t, `"three" is not in: one, two`, `"EOF" is not in: <nil>`)
}

func TestReturnsComparesEachResult(t *testing.T) {
	r := &reports{TB: t}
	pair := func(n int, err error) (int, error) { return n, err }
	expect.Returns(r, 1, nil)(pair(1, nil))
	expect.Returns(r, 1, io.EOF)(pair(1, fmt.Errorf("reading: %w", io.EOF)))
	r.want(t)
	expect.Returns(r, 1, nil)(pair(2, nil))
	expect.Returns(r, 1, nil)(pair(1, io.EOF))
	expect.Returns(r, 1, io.EOF)(pair(1, nil))
	expect.Returns(r, int64(1), nil)(pair(1, nil))
	expect.Returns(r, 1)(pair(1, nil))
	r.want(t, "returned [2 <nil>], want [1 <nil>]", "returned [1 EOF], want [1 <nil>]", "returned [1 <nil>], want [1 EOF]",
		"returned [1 <nil>], want [1 <nil>]", "returned [1 <nil>], want [1]")
}

func TestEachCaseIsATestBesideTheOthers(t *testing.T) {
	table := map[string]int{"one": 1, "two": 2}
	var tried atomic.Int64
	t.Run("all", func(t *testing.T) {
		expect.Each(t, table, func(t *testing.T, name string, n int) {
			expect.Equal(t, "name", t.Name(), "TestEachCaseIsATestBesideTheOthers/all/"+name)
			expect.Equal(t, "case", n, table[name])
			tried.Add(1)
		})
		expect.Equal(t, "tried before the test that lists them has ended", tried.Load(), 0)
	})
	expect.Equal(t, "tried", tried.Load(), 2)
}

func TestSamplesAreManyWhereTHOROUGHIsSet(t *testing.T) {
	t.Setenv("THOROUGH", "")
	expect.Equal(t, "by default", expect.Samples(3, 30), 3)
	table := map[string]int{"a": 1, "b": 2, "c": 3, "d": 4}
	expect.Equal(t, "cases by default", len(expect.Some(2, table)), 2)
	drawn, firsts := 0, make(map[string]bool)
	for range 1000 {
		if expect.Drawn(2) {
			drawn++
		}
		for first := range expect.Some(1, table) {
			firsts[first] = true
		}
	}
	if drawn == 0 || drawn == 1000 || len(firsts) != len(table) {
		t.Errorf("%d of 1000 cases are drawn, where one in two is to be, and %d of %d", drawn, len(firsts), len(table))
	}
	t.Setenv("THOROUGH", "1")
	expect.Equal(t, "where it is set", expect.Samples(3, 30), 30)
	expect.Equal(t, "cases", len(expect.Some(2, table)), 4)
	for range 1000 {
		expect.Equal(t, "a case is tried", expect.Drawn(2), true)
	}
}
