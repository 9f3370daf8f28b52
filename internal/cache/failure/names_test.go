package failure

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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

// code is an error with a number.
type code int

func (c code) Error() string { return "code " + strconv.Itoa(int(c)) }

// codes carries codes. Those from 600 are too long, and of 666 it panics.
type codes struct{}

func (codes) EncodeError(err error) []byte {
	var c code
	is := errors.As(err, &c)
	if !is {
		return nil
	}
	return append([]byte(strconv.Itoa(int(c))), bytes.Repeat([]byte(" "), int(c)/700*maxCode)...)
}

func (codes) DecodeError(data []byte) error {
	n, err := strconv.Atoi(string(data))
	if err != nil || n == 666 {
		panic(err)
	}
	return code(n)
}

func TestWhatTheCodecEncodesTravelsBesideTheNames(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	names := map[string]error{"gone": gone}
	s, old := NewNames(nil, names, codes{}), NewNames(nil, names, nil)
	for _, c := range []struct {
		err             error
		matched, before int // on an instance with the codec, and without
	}{
		{errors.New("plain"), 0, 0},
		{fmt.Errorf("at 7: %w", code(404)), 1, 0},
		{errors.Join(gone, code(409)), 2, 1},
		{errors.Join(gone, code(666)), 1, 1},
		{code(700), 0, 0}, // it is too long
	} {
		travelled := s.Encode(c.err, c.err.Error())
		text, matched := s.Decode(travelled)
		expect.Equal(t, "text", text, c.err.Error())
		expect.Equal(t, text+": matched", len(matched), c.matched)
		if got := code(0); errors.As(errors.Join(matched...), &got) {
			expect.ErrorIs(t, c.err, got)
		}
		text, matched = old.Decode(travelled)
		expect.Equal(t, "text without the codec", text, c.err.Error())
		expect.Equal(t, text+": matched without the codec", len(matched), c.before)
	}
	text, matched := s.Decode("\x00\x1enot base64!\x00text")
	expect.Equal(t, "what cannot be decoded is left out", fmt.Sprint(text, matched), "text[]")
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "text", "\x00", "\x00\x00", "\x00eof\x00text", "\x00eof\x1feof\x00", "\x00other\x00text", "\x00eof", "\x00\x1f\x00", "\x00EOF\x00text", "eof\x00", "\x00eof\x00\x00eof\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, travelled string) {
		names := NewNames(nil, map[string]error{"eof": io.EOF, "closed": io.ErrClosedPipe}, nil)
		text, matched := names.Decode(travelled)
		again, errs := names.Decode(names.Encode(errors.Join(append(matched, errors.New("x"))...), text))
		if again != text || len(matched) > 0 && !errors.Is(errors.Join(errs...), matched[0]) {
			t.Errorf("%q is %q with %v, and that is %q with %v", travelled, text, matched, again, errs)
		}
		if i := slices.Index(matched, nil); i >= 0 {
			t.Errorf("%q matches nothing at %d", travelled, i)
		}
	})
}
