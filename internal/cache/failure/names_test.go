package failure

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTextsOfFailuresTravelUnchanged(t *testing.T) {
	t.Parallel()
	errGone, errOver := errors.New("gone"), errors.New("over")
	s := NewNames(nil, map[string]error{"gone": errGone, "eof": errOver}, nil)
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New(""), 0}, {errors.New("plain"), 0}, {errors.New("\x00"), 0}, {errors.New("\x00x\x00y"), 0},
		{errGone, 1}, {errors.Join(errGone, errOver), 2}, {fmt.Errorf("\x00\x1f: %w", errGone), 1},
	} {
		text, matched := s.Decode(s.Encode(c.err, c.err.Error()))
		expect.Equal(t, "text", text, c.err.Error())
		expect.Equal(t, "matched", len(matched), c.want)
		for _, m := range matched {
			expect.ErrorIs(t, c.err, m)
		}
	}
	text, matched := s.Decode("\x00unknown\x1fgone\x00text")
	expect.Equal(t, "unknown names are left out", fmt.Sprint(text, matched), "text[gone]")
	text, _ = s.Decode("\x00cut")
	expect.Equal(t, "no mark at the end", text, "\x00cut")
}

// What a program can choose of what travels: its names, its texts, and what its codec encodes.
func TestNoProgramCanTakeTheNameOfAnOwnCause(t *testing.T) {
	t.Parallel()
	late := errors.New("late")
	own := map[string]error{"late": late}
	s := NewNames(own, map[string]error{"late": errors.New("another"), "gone": errors.New("gone")}, codes{})
	old := NewNames(nil, nil, nil)
	for _, err := range []error{
		errors.New("\x00\x1dlate\x00text"), errors.New("\x1dlate"), errors.Join(s.byName["late"], errors.New("\x00\x1dlate\x00")), code(404),
	} {
		_, matched := s.Decode(s.Encode(err, err.Error()))
		expect.Equal(t, "forged", errors.Is(errors.Join(matched...), late), false)
	}
	travelled := s.Encode(errors.Join(late, s.byName["gone"], code(404)), "text")
	text, matched := s.Decode(travelled)
	expect.Equal(t, "text", text, "text")
	expect.Equal(t, "matched", len(matched), 3)
	expect.ErrorIs(t, errors.Join(matched...), late)
	text, matched = old.Decode(travelled)
	expect.Equal(t, "without them", fmt.Sprint(text, matched), "text[]")
	text, matched = s.Decode(s.Encode(late, strings.Repeat("x", 5000)))
	expect.Equal(t, "a long text", fmt.Sprint(len(text), len(matched)), "1024 1")
}
