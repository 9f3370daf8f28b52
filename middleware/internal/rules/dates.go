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

// rfc850 is the one of the three formats of HTTP dates (RFC 9110 section 5.6.7) that has a year of two digits.
const rfc850 = "Monday, 02-Jan-06 15:04:05 GMT"

// ParseDate parses an HTTP date, in upper or lower case (RFC 9111 section 4.2). A two-digit year that would be more than 50 years in the
// future is in the past. The day of the week does not count.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	if len(s) > 40 {
		return time.Time{}, false
	}
	s = strings.ToUpper(s)
	for _, layout := range []string{http.TimeFormat, rfc850, time.ANSIC} {
		t, err := time.Parse(layout, s)
		if err != nil || afterDay(t.Format(layout)) != afterDay(s) { // time.Parse takes two spaces for one, and one digit for two
			continue
		}
		if layout == rfc850 {
			t = t.AddDate(now.Year()/100*100-t.Year()/100*100, 0, 0)
			if t.After(now.AddDate(50, 0, 0)) {
				t = t.AddDate(-100, 0, 0)
			}
		}
		return t, true
	}
	return time.Time{}, false
}

func afterDay(date string) string {
	_, rest, _ := strings.Cut(date, " ")
	return strings.ToUpper(rest)
}
