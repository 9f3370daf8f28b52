package failure

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestTextsOfFailuresTravelUnchanged(t *testing.T) {
	t.Parallel()
	errGone, errOver := errors.New("gone"), errors.New("over")
	s := NewNames(map[string]error{"gone": errGone, "eof": errOver}, nil)
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
