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

// set sets one directive. Unknown directives are ignored (RFC 9111 section 5.2.3).
func (d *Directives) set(name, arg string) {
	arg, hasArg := strings.CutPrefix(arg, "=")
	switch name {
	case "no-cache":
		d.limit(&d.NoCache, arg, hasArg)
	case "private":
		d.limit(&d.Private, arg, hasArg)
	case "max-stale":
		if !hasArg {
			d.MaxStale = Seconds{Longest, true}
			return
		}
		d.seconds(&d.MaxStale, arg)
	default:
		if flag := flags[name]; flag != nil {
			*flag(d) = true
		} else if field := deltas[name]; field != nil {
			d.seconds(field(d), arg)
		}
	}
}

// flags and deltas are where directives without and with a number are kept.
var (
	flags = map[string]func(*Directives) *bool{
		"no-store":         func(d *Directives) *bool { return &d.NoStore },
		"only-if-cached":   func(d *Directives) *bool { return &d.OnlyIfCached },
		"public":           func(d *Directives) *bool { return &d.Public },
		"must-revalidate":  func(d *Directives) *bool { return &d.MustRevalidate },
		"proxy-revalidate": func(d *Directives) *bool { return &d.ProxyRevalidate },
		"must-understand":  func(d *Directives) *bool { return &d.MustUnderstand },
	}
	deltas = map[string]func(*Directives) *Seconds{
		"max-age":                func(d *Directives) *Seconds { return &d.MaxAge },
		"s-maxage":               func(d *Directives) *Seconds { return &d.SMaxAge },
		"min-fresh":              func(d *Directives) *Seconds { return &d.MinFresh },
		"stale-while-revalidate": func(d *Directives) *Seconds { return &d.StaleWhileRevalidate },
		"stale-if-error":         func(d *Directives) *Seconds { return &d.StaleIfError },
	}
)

// limit sets no-cache or private: for the whole response, or for the listed fields.
func (d *Directives) limit(whole *bool, fields string, hasFields bool) {
	listed := strings.FieldsFunc(fields, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if !hasFields || len(listed) == 0 {
		*whole = true
	}
	for _, field := range listed {
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
// are Dictionaries of Structured Fields; members of a wrong type are ignored.
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
		return d, true
	}
	return d, false
}

func (d *Directives) setMember(name string, member httpsfv.Member) {
	listed, isString := Value[string](member)
	yes, _ := Value[bool](member)
	n, isInt := Value[int64](member)
	switch mayList := name == "no-cache" || name == "private"; {
	case mayList && isString:
		d.set(name, "="+listed)
	case yes && (mayList || flags[name] != nil):
		d.set(name, "")
	case isInt && n >= 0 && deltas[name] != nil:
		d.set(name, "="+strconv.FormatInt(n, 10))
	}
}
