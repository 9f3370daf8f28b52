package middleware

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// keyFields are request fields that often shape what a handler answers though no Vary says so: who sends one gets a response of
// its own. (Caches are poisoned with these.)
var keyFields = []string{
	"Forwarded", "Front-End-Https", "X-Forwarded-Host", "X-Forwarded-Method", "X-Forwarded-Path", "X-Forwarded-Port",
	"X-Forwarded-Prefix", "X-Forwarded-Proto", "X-Forwarded-Protocol", "X-Forwarded-Scheme", "X-Forwarded-Server",
	"X-Forwarded-Ssl", "X-Forwarded-Uri", "X-Host", "X-Http-Host-Override", "X-Http-Method", "X-Http-Method-Override",
	"X-Method-Override", "X-Original-Host", "X-Original-Method", "X-Original-Uri", "X-Original-Url", "X-Rewrite-Url",
	"X-Scheme", "X-Script-Name", "X-Url-Scheme",
}

// What is told apart although no Vary names it stands in a record under a name that begins with a colon, as no field does.
const (
	unnamed         = ":"
	byAuthorization = ":authorization" // that there is one
	byCookie        = ":cookie"        // likewise
	byURL           = ":url"           // what a router in front made of the URL
)

// selectors are the fields of keyFields, as the Config changes them.
func selectors(more, less []string) []string {
	names := append(slices.Clone(keyFields), rules.Names(more)...)
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(rules.Names(less), name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// unnamedOf is what tells the request's pages apart although no Vary names it, by name.
func (c *Config) unnamedOf(r *http.Request) (list []record.Pair) {
	for _, name := range c.selectors {
		if lines := r.Header[name]; len(lines) > 0 {
			if value := unnamedValue(name, lines); value != "" {
				list = append(list, record.Pair{Name: unnamed + name, Value: value})
			}
		}
	}
	for name, lines := range r.Header { // CGI and what descends from it take _ for -
		if strings.Contains(name, "_") && slices.Contains(c.selectors, http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))) {
			list = append(list, record.Pair{Name: unnamed + name, Value: normal(name, lines)})
		}
	}
	if len(r.Header["Authorization"]) > 0 {
		list = append(list, record.Pair{Name: byAuthorization, Value: "="})
	}
	if c.guesses() && len(r.Header["Cookie"]) > 0 {
		list = append(list, record.Pair{Name: byCookie, Value: "="})
	}
	if u := c.rewritten(r); u != "" {
		list = append(list, record.Pair{Name: byURL, Value: short(u)})
	}
	return list
}

func unnamedValue(name string, lines []string) string {
	if name == "Forwarded" {
		return forwardedShape(lines)
	}
	return normal(name, lines)
}

// guesses reports whether responses may be fresh that do not say so themselves. They may be meant for one user.
func (c *Config) guesses() bool { return c.DefaultTTL > 0 || c.Heuristic > 0 }

// forwardedShape is what a Forwarded field (RFC 7239) tells the handler of the request, without who sent it and through whom:
// each client would have pages of its own. A field that could be read in two ways counts as it is.
func forwardedShape(lines []string) string {
	whole := strings.Join(lines, ",")
	if strings.ContainsAny(whole, `\()<>{}`) {
		return short("=" + whole)
	}
	var elements []string
	for element := range strings.SplitSeq(whole, ",") {
		var shape []string
		for param := range strings.SplitSeq(element, ";") {
			name, value, _ := strings.Cut(strings.Trim(param, " \t"), "=")
			if name = strings.ToLower(name); name != "for" && name != "by" {
				shape = append(shape, name+"="+value)
			} else if strings.Count(value, `"`)%2 > 0 {
				return short("=" + whole) // the quotes reach beyond the parameter
			}
		}
		shape = slices.DeleteFunc(shape, func(s string) bool { return s == "=" })
		elements = append(elements, strings.Join(shape, ";")) // an empty one counts: handlers read the first, or the last
	}
	if shape := strings.Join(elements, ","); strings.Trim(shape, ",") != "" {
		return short("=" + shape)
	}
	return ""
}

// selection is the values of the fields that select a response, of a request, by name; with what no Vary names.
func selection(r *http.Request, fields []string, unnamed []record.Pair) []record.Pair {
	list := make([]record.Pair, 0, len(fields)+len(unnamed))
	for _, name := range fields {
		list = append(list, record.Pair{Name: name, Value: normal(name, r.Header[name])})
	}
	list = append(list, unnamed...)
	slices.SortFunc(list, func(a, b record.Pair) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// selects reports whether a request selects the record: it agrees in all fields that the response depends on, and in what no
// Vary names.
func selects(rec *record.Record, r *http.Request, others []record.Pair) bool {
	matched := 0
	for _, p := range rec.Vary {
		if strings.HasPrefix(p.Name, unnamed) {
			if !slices.Contains(others, p) {
				return false
			}
			matched++
		} else if normal(p.Name, r.Header[p.Name]) != p.Value {
			return false
		}
	}
	for _, p := range others {
		if waived(rec, p.Name) {
			matched++
		}
	}
	return matched == len(others)
}

// waived reports whether a response does not depend on who asks: it says itself that it may be shared (RFC 9111 section 3.5), or
// how long it is fresh.
func waived(rec *record.Record, name string) bool {
	return rec.IsResponse() && (name == byAuthorization && rec.Terms.Shared || name == byCookie && rec.Terms.Explicit)
}

// varyOf is what selects a response among those of its page.
func varyOf(rec *record.Record, r *http.Request, fields []string, unnamed []record.Pair) []record.Pair {
	kept := slices.DeleteFunc(slices.Clone(unnamed), func(p record.Pair) bool { return waived(rec, p.Name) })
	return selection(r, fields, kept)
}

// varyFields is the fields that a response says it depends on, in canonical form.
func varyFields(h http.Header) []string {
	fields := rules.Names(h["Vary"])
	slices.Sort(fields)
	return slices.Compact(fields)
}
