package failure

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// code is an error with a number.
type code int

func (c code) Error() string { return "code " + strconv.Itoa(int(c)) }

// codes carries codes. Those from 600 are too long, and of 666 it panics.
type codes struct{}

func (codes) EncodeError(err error) []byte {
	c, is := errors.AsType[code](err)
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
		if got, is := errors.AsType[code](errors.Join(matched...)); is {
			expect.ErrorIs(t, c.err, got)
		}
		text, matched = old.Decode(travelled)
		expect.Equal(t, "text without the codec", text, c.err.Error())
		expect.Equal(t, text+": matched without the codec", len(matched), c.before)
	}
	text, matched := s.Decode("\x00\x1enot base64!\x00text")
	expect.Equal(t, "what cannot be decoded is left out", fmt.Sprint(text, matched), "text[]")
}
