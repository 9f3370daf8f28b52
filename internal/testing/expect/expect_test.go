package expect_test

import (
	"errors"
	"fmt"
	"io"
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

func TestSamplesAreManyWhereTHOROUGHIsSet(t *testing.T) {
	t.Setenv("THOROUGH", "")
	expect.Equal(t, "by default", expect.Samples(3, 30), 3)
	t.Setenv("THOROUGH", "1")
	expect.Equal(t, "where it is set", expect.Samples(3, 30), 30)
}
