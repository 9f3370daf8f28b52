package rules

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/cacheguard/go/middleware/internal/record"
)

// Longest is the longest duration. Larger delta-seconds count as Longest (RFC 9111 section 1.2.2 asks for at least 2^31).
const Longest = record.Longest

// Directives are the directives of a Cache-Control field that concern a shared cache, of a request or a response.
type Directives struct {
	NoStore, OnlyIfCached                   bool
	Public, MustRevalidate, ProxyRevalidate bool
	MustUnderstand                          bool
	Understands, Shares                     bool     // must-understand and must-revalidate, as far as they permit something
	NoCache, Private                        bool     // without a list of fields
	Without                                 []string // the fields that no-cache and private list: not to be stored
	MaxAge, SMaxAge, MinFresh, MaxStale     Seconds
	StaleWhileRevalidate, StaleIfError      Seconds
	Malformed                               bool // contradictory or unparsable: the response is stale
}

// Seconds is the argument of a directive.
type Seconds struct {
	time.Duration
	Given bool
}

// Parse parses the lines of a Cache-Control field. Contradictory or unparsable directives make it malformed. A line that does not consist
// of directives ("private; max-age=60") also makes it private, as the rest of the line may forbid storing. So does a field that is too
// long.
func Parse(lines []string) Directives {
	switch {
	case len(lines) == 0:
		return Directives{} // most requests have none, and nothing is allocated for them
	case IsLong(lines):
		return Directives{Malformed: true, Private: true}
	}
	return parse(lines)
}

func parse(lines []string) (d Directives) {
	for _, line := range lines {
		for rest := line; rest != ""; {
			var name, arg string
			var ok bool
			if name, arg, rest, ok = nextDirective(rest); !ok {
				d.Malformed, d.Private = true, true
				return d
			}
			if name != "" {
				d.set(name, arg)
			}
		}
	}
	return d
}

// nextDirective splits off one directive: a token, which = and a token or quoted string may follow. It returns the argument with a leading
// =, to tell an empty one from none.
func nextDirective(s string) (name, arg, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t,")
	name, s = cutToken(s)
	if name == "" {
		return "", "", "", s == ""
	}
	if strings.HasPrefix(s, "=") {
		if arg, s, ok = argument(s[1:]); !ok {
			return "", "", "", false
		}
		arg = "=" + arg
	}
	s = strings.TrimLeft(s, " \t")
	if s != "" && s[0] != ',' {
		return "", "", "", false
	}
	return strings.ToLower(name), arg, s, true
}

// argument splits off a token or a quoted string.
func argument(s string) (arg, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		arg, rest = cutToken(s)
		return arg, rest, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// cutToken splits off the token that s begins with.
func cutToken(s string) (token, rest string) {
	rest = strings.TrimLeftFunc(s, record.IsTokenChar)
	return s[:len(s)-len(rest)], rest
}

// set sets one directive. Unknown directives are ignored, as are extensions that cannot be parsed (RFC 9111 section 5.2.3). What forbids counts
// in its strictest reading, whatever its argument is; what permits counts only without one.
func (d *Directives) set(name, arg string) {
	arg, hasArg := strings.CutPrefix(arg, "=")
	d.Public = d.Public || name == "public" && !hasArg
	d.Understands = d.Understands || name == "must-understand" && !hasArg
	d.Shares = d.Shares || name == "must-revalidate" && !hasArg
	switch name {
	case "no-cache":
		d.limit(&d.NoCache, arg)
	case "private":
		d.limit(&d.Private, arg)
	case "max-age":
		d.seconds(&d.MaxAge, arg)
	case "s-maxage":
		d.seconds(&d.SMaxAge, arg)
	case "min-fresh":
		t, ok := parseSeconds(arg)
		if !ok {
			t = Longest
		}
		d.MinFresh = Seconds{max(d.MinFresh.Duration, t), true}
	case "max-stale":
		if !hasArg && !d.MaxStale.Given {
			d.MaxStale = Seconds{Longest, true}
		}
		d.MaxStale.least(arg)
	case "stale-while-revalidate":
		d.StaleWhileRevalidate.least(arg)
	case "stale-if-error":
		d.StaleIfError.least(arg)
	default:
		if flag := flags[name]; flag != nil {
			*flag(d) = true
		}
	}
}

// flags are where directives that forbid are kept.
var flags = map[string]func(*Directives) *bool{
	"no-store":         func(d *Directives) *bool { return &d.NoStore },
	"only-if-cached":   func(d *Directives) *bool { return &d.OnlyIfCached },
	"must-revalidate":  func(d *Directives) *bool { return &d.MustRevalidate },
	"proxy-revalidate": func(d *Directives) *bool { return &d.ProxyRevalidate },
	"must-understand":  func(d *Directives) *bool { return &d.MustUnderstand },
}

// limit sets no-cache or private: for the listed fields, or for the whole response, if the list is not one of names.
func (d *Directives) limit(whole *bool, fields string) {
	for field := range strings.SplitSeq(fields, ",") {
		if field = strings.Trim(field, " \t"); field == "" || !record.IsToken(field) {
			*whole = true
		}
		d.Without = append(d.Without, http.CanonicalHeaderKey(field))
	}
}

// seconds sets an argument in seconds. Two different arguments, or one that is not a number, make the directives malformed.
func (d *Directives) seconds(field *Seconds, arg string) {
	t, ok := parseSeconds(arg)
	if !ok || field.Given && field.Duration != t {
		d.Malformed = true
		return
	}
	*field = Seconds{t, true}
}

// least sets how long something is permitted. Of several arguments, the smallest that is a number counts.
func (s *Seconds) least(arg string) {
	if t, ok := parseSeconds(arg); ok && (!s.Given || t < s.Duration) {
		*s = Seconds{t, true}
	}
}

// parseSeconds parses delta-seconds: digits only.
func parseSeconds(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(10*n+int64(s[i]-'0'), int64(Longest/time.Second))
	}
	return time.Duration(n) * time.Second, true
}

// targeted parses the first of the fields that is present and valid. It counts instead of Cache-Control and Expires (RFC 9213). These fields
// are Dictionaries of Structured Fields; members of a wrong type are ignored, unless they forbid something.
func targeted(h http.Header, fields []string) (d Directives, found bool) {
	for _, field := range fields {
		lines := h.Values(field)
		if len(lines) == 0 {
			continue
		}
		dict, err := httpsfv.UnmarshalDictionary(lines)
		if err != nil || len(dict.Names()) == 0 {
			continue
		}
		for _, name := range dict.Names() {
			member, _ := dict.Get(name)
			d.setMember(name, member)
		}
		if strings.Count(strings.Join(lines, ","), "private") > 1 {
			d.Private = d.Private || len(d.Without) > 0 // the Dictionary has only the last of them
		}
		return d, true
	}
	return d, false
}

func (d *Directives) setMember(name string, member httpsfv.Member) {
	listed, isString := Value[string](member)
	yes, isBool := Value[bool](member)
	n, isInt := Value[int64](member)
	switch mayList := name == "no-cache" || name == "private"; {
	case isInt && n >= 0 && !mayList:
		d.set(name, "="+strconv.FormatInt(n, 10))
	case name == "max-age", name == "s-maxage", isBool && !yes:
	case yes:
		d.set(name, "")
	case isString && mayList:
		d.set(name, "="+listed)
	default:
		d.set(name, "=?") // what no directive has: neither a number nor names of fields
	}
}
