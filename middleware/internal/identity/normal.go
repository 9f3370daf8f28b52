package identity

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/cacheguard/go/middleware/internal/rules"
)

// normal gives values with the same meaning the same text (RFC 9111 section 4.1). It joins lines. In fields of preferences, it
// removes differences in spaces, case, and the notation of weights; in other fields, only in spaces around commas. An absent
// field differs from an empty one. A field that is too long to be taken apart counts as it is.
func (n *Namer) normal(name string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	value := strings.Join(lines, ",")
	switch {
	case rules.IsLong(lines):
		return digested(Separator + value) // no shorter value gives the same text
	case strings.Contains(value, `"`): // what is quoted counts as it is
	case name == "Accept": // the case of its parameters counts
		value = n.preferences(value)
	case name == "Accept-Charset", name == "Accept-Encoding", name == "Accept-Language":
		value = n.preferences(strings.ToLower(value))
	case name == "Authorization", name == "Cookie":
	default:
		value = spaceless(value)
	}
	return short("=" + value)
}

// maxValue is the length of the longest value that is used as it is.
const maxValue = 256

// short replaces a long value by a digest: records hold it in Redis, and clients must not choose its length.
func short(value string) string {
	if len(value) <= maxValue {
		return value
	}
	return digested(value)
}

func digested(value string) string {
	sum := sha256.Sum256([]byte(value))
	return Separator + hex.EncodeToString(sum[:])
}

// spaceless is a list without the spaces around its commas.
func spaceless(value string) string {
	if !strings.ContainsAny(value, " \t") {
		return value
	}
	parts := strings.Split(value, ",")
	for i := range parts {
		parts[i] = strings.Trim(parts[i], " \t")
	}
	return strings.Join(parts, ",")
}

// preferences is what a client accepts, with all weights written alike. The order stays: it has no meaning in RFC 9110 section 12.5, but
// many handlers take the first member, or the first of those with the largest weight. If SortAccept is set, the most wanted comes first.
func (n *Namer) preferences(value string) string {
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
			} else if part != "" {
				p.text += ";" + part
			}
		}
		list = append(list, p)
	}
	if n.set.SortAccept {
		slices.SortFunc(list, func(a, b preference) int {
			return cmp.Or(b.weight-a.weight, strings.Compare(a.text, b.text))
		})
	}
	var b strings.Builder
	for _, p := range list {
		b.WriteString(p.text + ";q=" + strconv.Itoa(p.weight) + ",")
	}
	return b.String()
}

// weight reads a weight: q=0 to q=1, with at most three decimals (RFC 9110 section 12.4.2).
func weight(param string) (thousandths int, ok bool) {
	digits, ok := strings.CutPrefix(strings.ToLower(param), "q=")
	if !ok || len(digits) == 0 || len(digits) > len("0.000") || digits[0] != '0' && digits[0] != '1' || len(digits) > 1 && digits[1] != '.' {
		return 0, false
	}
	decimals := "000"
	if len(digits) > 2 {
		decimals = (digits[2:] + "000")[:3]
	}
	n, err := strconv.Atoi(digits[:1] + decimals)
	return n, err == nil && n <= 1000 && !strings.ContainsAny(decimals, "+-")
}
