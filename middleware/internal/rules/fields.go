package rules

import (
	"net/http"
	"slices"
	"strings"
)

// List is the members of a list of tokens.
func List(lines []string) (members []string) {
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			if member = strings.Trim(member, " \t"); member != "" {
				members = append(members, member)
			}
		}
	}
	return members
}

// notAField reports whether a member of Vary names no field: * does not, and what cannot be a name may mean anything.
func notAField(name string) bool {
	return name == "*" || strings.ContainsFunc(name, func(c rune) bool { return c > 127 || !IsTokenChar(byte(c)) })
}

// Names is the members of a list of field names, in canonical form.
func Names(lines []string) []string {
	names := List(lines)
	for i := range names {
		names[i] = http.CanonicalHeaderKey(names[i])
	}
	return names
}

// Tags are those of a response: Cache-Tag is separated by commas, Surrogate-Key by spaces.
func Tags(h http.Header) (names []string) {
	names = List(h["Cache-Tag"])
	for _, line := range h["Surrogate-Key"] {
		names = append(names, strings.Fields(line)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hopByHop are fields that are for one connection (RFC 9110 section 7.6.1), and proxies' own (RFC 9111 section 3.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// IsHopByHop reports whether a field is for one connection alone.
func IsHopByHop(name string) bool { return name == "Close" || slices.Contains(hopByHop, name) }

// Unstorable tells the fields that are not stored: those, what Connection lists, and what Cache-Control excepts.
func Unstorable(h http.Header, without []string) func(name string) bool {
	listed := Names(h["Connection"])
	return func(name string) bool {
		return name == "Content-Length" || slices.Contains(hopByHop, name) || slices.Contains(listed, name) ||
			slices.Contains(without, name)
	}
}

// Trailers tells the fields that are sent after the body, in the two ways that net/http has.
func Trailers(h http.Header) func(name string) bool {
	announced := Names(h["Trailer"])
	return func(name string) bool {
		return strings.HasPrefix(name, http.TrailerPrefix) || slices.Contains(announced, name)
	}
}
