package canonical

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// Header is a header in one notation: fields with the same meaning (RFC 9111 section 4.1) are the same text.
func (n *Namer) Header(h http.Header) http.Header {
	all := make(http.Header, len(h))
	for name, lines := range h {
		if lines = n.field(name, lines); len(lines) > 0 {
			all[name] = lines
		}
	}
	return all
}

// field is the one notation of a field: a list of tokens is one line, with a comma and a space between its members. Fields of preferences also
// have one notation of weights and letters. All others stay as they are, as does what is quoted or too long to be taken apart.
func (n *Namer) field(name string, lines []string) []string {
	if len(lines) == 0 || name == "Authorization" || name == "Cookie" || rules.IsLong(lines) {
		return lines
	}
	switch value := strings.Join(lines, ","); {
	case name == "Forwarded" && n.isKeyField(name):
		return forwardedShape(lines)
	case strings.Contains(value, `"`):
		return lines
	case name == "Accept": // the case of its parameters counts
		return []string{n.preferences(value, func(s string) string { return s })}
	case name == "Accept-Language":
		return []string{n.preferences(value, languageTag)}
	case name == "Accept-Charset", name == "Accept-Encoding":
		return []string{n.preferences(value, strings.ToLower)}
	case (len(lines) > 1 || strings.ContainsAny(value, ", \t")) && !strings.ContainsFunc(value, notInList):
		return []string{spaced(value)}
	}
	return lines
}

// notInList reports whether a character shows that a field is no list of tokens, but perhaps a URL or a date, whose commas mean something else.
func notInList(c rune) bool {
	return !record.IsTokenChar(c) && c != ',' && c != ' ' && c != '\t'
}

// normal is the text of a field by which pages are told apart. An absent field differs from an empty one.
func (n *Namer) normal(name string, lines []string) string {
	switch lines = n.field(name, lines); {
	case len(lines) == 0:
		return ""
	case rules.IsLong(lines):
		return digested(Separator + strings.Join(lines, Separator)) // no shorter value gives the same text
	}
	return short("=" + strings.Join(lines, Separator))
}

// short replaces a long value by a digest.
func short(value string) string { return bounded(value, maxValue, 0) }

// spaced is a list with one space after each comma.
func spaced(value string) string {
	parts := strings.Split(value, ",")
	for i := range parts {
		parts[i] = strings.Trim(parts[i], " \t")
	}
	return strings.Join(parts, ", ")
}

// preferences is what a client accepts, with all weights written alike. The order stays: it has no meaning in RFC 9110 section 12.5, but
// many handlers take the first member, or the first of those with the largest weight. If SortAccept is set, the most wanted comes first.
func (n *Namer) preferences(value string, written func(string) string) string {
	type preference struct {
		weight int // of 1000
		text   string
	}
	var list []preference
	for _, member := range rules.List([]string{value}) {
		p := preference{weight: 1000}
		for i, part := range strings.Split(member, ";") {
			part = strings.Trim(part, " \t")
			if thousandths, ok := weight(part); ok && i > 0 {
				p.weight = thousandths
			} else if part != "" || i == 0 {
				p.text += ";" + written(part)
			}
		}
		list = append(list, p)
	}
	if n.set.SortAccept {
		slices.SortFunc(list, func(a, b preference) int {
			return cmp.Or(b.weight-a.weight, strings.Compare(a.text, b.text))
		})
	}
	texts := make([]string, len(list))
	for i, p := range list {
		if texts[i] = p.text[1:]; p.weight < 1000 {
			texts[i] += ";q=" + strconv.FormatFloat(float64(p.weight)/1000, 'f', -1, 64)
		}
	}
	return strings.Join(texts, ", ")
}

// languageTag is a tag in the letters that RFC 5646 section 2.1.1 recommends, as most clients send it: zh-Hant-TW.
func languageTag(tag string) string {
	subtags := strings.Split(strings.ToLower(tag), "-")
	for i, s := range subtags {
		switch {
		case i == 0 || len(subtags[i-1]) == 1:
		case len(s) == 2:
			subtags[i] = strings.ToUpper(s)
		case len(s) == 4:
			subtags[i] = strings.ToUpper(s[:1]) + s[1:]
		}
	}
	return strings.Join(subtags, "-")
}

// weight reads a weight: q=0 to q=1, with at most three decimals (RFC 9110 section 12.4.2).
func weight(param string) (thousandths int, ok bool) {
	digits, ok := strings.CutPrefix(strings.ToLower(param), "q=")
	before, decimals, _ := strings.Cut(digits, ".")
	if !ok || before != "0" && before != "1" || len(decimals) > 3 || strings.Trim(decimals, "0123456789") != "" {
		return 0, false
	}
	n, _ := strconv.Atoi((before + decimals + "000")[:4])
	return n, n <= 1000
}
