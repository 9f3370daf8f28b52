package failure

import (
	"errors"
	"io"
	"slices"
	"testing"
)

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
