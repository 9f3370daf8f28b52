package postgres

import "testing"

func FuzzParse(f *testing.F) {
	for _, kind := range []uint32{16, 17, 20, 21, 23, 26, 700, 701, 1082, 1114, 1184, 1700, 25, 0} {
		for _, text := range []string{"", "t", "1", "-9223372036854775808", "\\x00ff", "\\x0", "2026-11-23", "2026-11-23 12:00:00.5+01", "infinity", "0044-03-15 BC", "NaN"} {
			f.Add(kind, text)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint32, text string) {
		if v, err := parse(kind, text); err == nil && v == nil {
			t.Errorf("%q of type %d is NULL", text, kind)
		}
	})
}
