package canonical

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// Selection is the values, in a request, of the fields that select a response and of what no Vary names, by name.
func (n *Namer) Selection(r *http.Request, fields []string, unnamed []record.Pair) []record.Pair {
	list := make([]record.Pair, 0, len(fields)+len(unnamed))
	for _, name := range fields {
		list = append(list, record.Pair{Name: name, Value: n.normal(name, r.Header[name])})
	}
	list = append(list, unnamed...)
	slices.SortFunc(list, func(a, b record.Pair) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Selects reports whether a request selects the record: both agree on all fields that the response depends on, among them the ones that a Vary
// in front of the request names, and on what no Vary names.
func (n *Namer) Selects(rec *record.Record, r *http.Request, unnamed []record.Pair, named []string) bool {
	if rec.IsGuess() && len(r.Header["Cookie"]) > 0 {
		return false
	}
	matched := 0
	for _, name := range named {
		if !slices.ContainsFunc(rec.Vary, func(p record.Pair) bool { return p.Name == name }) {
			return false
		}
	}
	for _, p := range rec.Vary {
		if strings.HasPrefix(p.Name, colon) {
			if !slices.Contains(unnamed, p) {
				return false
			}
			matched++
		} else if n.normal(p.Name, r.Header[p.Name]) != p.Value {
			return false
		}
	}
	for _, p := range unnamed {
		if waived(rec, p.Name) {
			matched++
		}
	}
	return matched == len(unnamed)
}

// waived reports whether a response is the same for everybody, because it says that it may be shared (RFC 9111 section 3.5), or how
// long it is fresh.
func waived(rec *record.Record, name string) bool {
	return rec.IsResponse() && (name == byAuthorization && rec.Terms.Shared || name == byCookie && rec.Terms.Explicit)
}

// VaryOf is what selects a response among the variants of its page.
func (n *Namer) VaryOf(rec *record.Record, r *http.Request, fields []string, unnamed []record.Pair) []record.Pair {
	kept := slices.DeleteFunc(slices.Clone(unnamed), func(p record.Pair) bool { return waived(rec, p.Name) })
	return n.Selection(r, fields, kept)
}

// VaryFields are the fields that a response says it depends on, and what was set in front of it, in canonical form.
func VaryFields(h, front http.Header) []string {
	return rules.Sorted(append(rules.Names(h["Vary"]), rules.Names(front["Vary"])...))
}

// NamedFields returns the fields that tell the variants of a page apart, as Vary names them.
func NamedFields(rec *record.Record) (names []string) {
	for _, p := range rec.Vary {
		if !strings.HasPrefix(p.Name, colon) {
			names = append(names, p.Name)
		}
	}
	return names
}
