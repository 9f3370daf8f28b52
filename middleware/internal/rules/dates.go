package rules

import (
	"net/http"
	"strings"
	"time"
)

// date parses the date in a field. An absent, repeated or unparsable field is not ok.
func date(h http.Header, field string) (time.Time, bool) {
	lines := h.Values(field)
	if len(lines) != 1 {
		return time.Time{}, false
	}
	return ParseDate(lines[0], time.Now())
}

// The three formats of HTTP dates (RFC 9110 section 5.6.7). In a shape, a is a letter, 0 a digit, _ a digit or a space, and
// anything else itself: time.Parse alone takes two spaces for one, and one digit for two.
var dateFormats = []struct{ shape, layout string }{
	{"aaa, 00 aaa 0000 00:00:00 aaa", http.TimeFormat},
	{"*, 00-aaa-00 00:00:00 aaa", "Monday, 02-Jan-06 15:04:05 GMT"},
	{"aaa aaa _0 00:00:00 0000", time.ANSIC},
}

// ParseDate parses an HTTP date, in upper or lower case (RFC 9111 section 4.2). A two-digit year that would be more than 50 years in the
// future is in the past.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	if len(s) > 40 {
		return time.Time{}, false
	}
	for i, f := range dateFormats {
		if !shaped(s, f.shape) {
			continue
		}
		zone := strings.LastIndexByte(s, ' ') + 1
		if i < 2 && strings.EqualFold(s[zone:], "GMT") {
			s = s[:zone] + "GMT"
		}
		t, err := time.Parse(f.layout, s)
		if err == nil && i == 1 {
			t = t.AddDate(now.Year()/100*100-t.Year()/100*100, 0, 0)
			if t.After(now.AddDate(50, 0, 0)) {
				t = t.AddDate(-100, 0, 0)
			}
		}
		return t, err == nil
	}
	return time.Time{}, false
}

// shaped reports whether s has the shape. A star at its beginning is a word.
func shaped(s, shape string) bool {
	if rest, ok := strings.CutPrefix(shape, "*"); ok {
		shape, s = rest, strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	}
	if len(s) != len(shape) {
		return false
	}
	for i := range len(s) {
		digit, letter := '0' <= s[i] && s[i] <= '9', 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z'
		switch shape[i] {
		case 'a':
			if !letter {
				return false
			}
		case '0':
			if !digit {
				return false
			}
		case '_':
			if !digit && s[i] != ' ' {
				return false
			}
		default:
			if s[i] != shape[i] {
				return false
			}
		}
	}
	return true
}
