package rules

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestDatesAreReadAsRFC9110HasThem(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	at := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"Sun, 06 Nov 1994 08:49:37 GMT":     at,
		"Sunday, 06-Nov-94 08:49:37 GMT":    at,
		"Sun Nov  6 08:49:37 1994":          at,
		"sun, 06 nov 1994 08:49:37 gMt":     at,
		"SUNDAY, 06-NOV-94 08:49:37 gmt":    at,
		"Sunday, 06-Nov-50 08:49:37 GMT":    at.AddDate(56, 0, 0),
		"Sunday, 06-Nov-75 08:49:37 GMT":    at.AddDate(81, 0, 0),
		"Sunday, 06-Nov-77 08:49:37 GMT":    at.AddDate(-17, 0, 0),
		"Sun, 06  Nov 1994 08:49:37 GMT":    {},
		"Sun, 06  Nov 1994 8:49:37 GMT":     {},
		"Sun, 06 Nov 1994 8:49:37 GMT":      {},
		"Sun, 6 Nov 1994 08:49:37 GMT":      {},
		"Sun, 06 Nov 94 08:49:37 GMT":       {},
		"Sun, 06 Nov 1994 08:49:37 UTC":     {},
		"Sun, 06 Nov 1994 08:49:37 +0000":   {},
		"Sun 06 Nov 1994 08:49:37 GMT":      {},
		"Sun, 06-Nov-1994 08:49:37 GMT":     {},
		"Sun, 06 Nov 1994 08.49.37 GMT":     {},
		"Sun, 06 Nov 1994 25:49:37 GMT":     {},
		"Sun, 31 Feb 1994 08:49:37 GMT":     {},
		" Sun, 06 Nov 1994 08:49:37 GMT":    {},
		"Sun, 06 Nov 1994 08:49:37 GMT ":    {},
		"Sun, 06 Nov 1994 08:49:37 GMT foo": {},
		"0":                                 {},
		"":                                  {},
	} {
		if got, ok := ParseDate(s, now); !got.Equal(want) || ok == want.IsZero() {
			t.Errorf("%q: %v, %v, want %v", s, got, ok, want)
		}
	}
}

// Dates that net/http writes can always be read.
func FuzzParseDate(f *testing.F) {
	f.Add(int64(784111777), "Sunday, 06-Nov-94 08:49:37 GMT")
	f.Fuzz(func(t *testing.T, seconds int64, text string) {
		ParseDate(text, time.Unix(seconds, 0))
		at := time.Unix(seconds%(1<<37), 0).UTC() // years of four digits
		if at.Year() < 1 || at.Year() > 9999 {
			return
		}
		if got, ok := ParseDate(at.Format(http.TimeFormat), at); !ok || !got.Equal(at) {
			t.Errorf("%v is read as %v, %v", at, got, ok)
		}
	})
}

func FuzzDirectives(f *testing.F) {
	f.Add(`max-age=60, no-cache="a, b", private`)
	f.Fuzz(func(_ *testing.T, line string) {
		Parse([]string{line})
		targeted(http.Header{"X": {line}}, []string{"X"})
	})
}

func FuzzListsETag(f *testing.F) {
	for _, seed := range []string{"", "*", `"a"`, `W/"a"`, `"b", "a"`, `"b","a`, `"a`, `W/`, `W/W/"a"`, `"",,"a"`, "\"a\x00\"", `a, "a"`} {
		f.Add(seed, `"a"`)
	}
	f.Fuzz(func(t *testing.T, list, etag string) {
		if listsETag([]string{list}, "") && strings.TrimSpace(list) != "*" {
			t.Errorf("%q lists the ETag of a page that has none", list)
		}
		opaque, quoted := strings.CutPrefix(weak(etag), `"`)
		opaque, ended := strings.CutSuffix(opaque, `"`)
		if !quoted || !ended || strings.Contains(opaque, `"`) || len(etag) > 1000 {
			return
		}
		if !listsETag([]string{`"before" , W/"and"`, etag + `,"after"`}, etag) {
			t.Errorf("%q is not in a list that has it", etag)
		}
		if listsETag([]string{list}, etag) && strings.TrimSpace(list) != "*" && !strings.Contains(list, weak(etag)) {
			t.Errorf("%q lists %q", list, etag)
		}
	})
}
