package rules

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/cacheguard/go/middleware/internal/record"
)

// maxField is the length of the longest field that is taken apart, in bytes. Clients choose the length of theirs, up to what the server
// allows, which is a megabyte by default.
const maxField = 4 << 10

// IsLong reports whether a field is too long to be taken apart.
func IsLong(lines []string) bool {
	length := 0
	for _, line := range lines {
		length += len(line) + 1
	}
	return length > maxField
}

// List returns the members of a comma-separated list.
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

// Names returns the members of a list of field names, in canonical form.
func Names(lines []string) []string {
	names := List(lines)
	for i := range names {
		names[i] = http.CanonicalHeaderKey(names[i])
	}
	return names
}

// Tags returns the tags of a response. Commas separate those in Cache-Tag, spaces those in Surrogate-Key.
func Tags(h http.Header) (names []string) {
	names = List(h["Cache-Tag"])
	for _, line := range h["Surrogate-Key"] {
		names = append(names, strings.Fields(line)...)
	}
	return Sorted(names)
}

// Sorted are names in order, each once.
func Sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// The fields of RFC 9875.
const (
	CacheGroups            = "Cache-Groups"
	CacheGroupInvalidation = "Cache-Group-Invalidation"
)

// Groups returns the members of a list of strings (RFC 9651 section 3.3.3). A list that is malformed, or has members that are no strings,
// counts as empty, as the RFC has it. Parameters are ignored.
func Groups(lines []string) (names []string) {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil
	}
	for _, member := range list {
		name, ok := Value[string](member)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return Sorted(names)
}

// Value is the value of an Item of Structured Fields, if it is of that type.
func Value[T any](member httpsfv.Member) (value T, ok bool) {
	if item, is := member.(httpsfv.Item); is {
		value, ok = item.Value.(T)
	}
	return value, ok
}

// hopByHop are the fields of one connection (RFC 9110 section 7.6.1) and of one proxy (RFC 9111 section 3.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// IsHopByHop reports whether a field concerns one connection only.
func IsHopByHop(name string) bool { return name == "Close" || slices.Contains(hopByHop, name) }

// Unstorable returns a function that reports whether a field of the response must not be stored: hop-by-hop fields, what Connection
// lists, and what Cache-Control excepts.
func Unstorable(h http.Header, without []string) func(name string) bool {
	listed := Names(h["Connection"])
	return func(name string) bool {
		return name == "Content-Length" || slices.Contains(hopByHop, name) || slices.Contains(listed, name) ||
			slices.Contains(without, name)
	}
}

// Trailers returns a function that reports whether a field is sent after the body, declared in either of the two ways of net/http.
func Trailers(h http.Header) func(name string) bool {
	announced := Names(h["Trailer"])
	return func(name string) bool {
		return strings.HasPrefix(name, http.TrailerPrefix) || slices.Contains(announced, name)
	}
}

// TrailerOf is what follows the body of a response, when its handler has returned. Sent is the header as it was sent, and set the header
// as the handler left it.
func TrailerOf(sent, set http.Header) http.Header {
	trailer, is := make(http.Header), Trailers(sent)
	for name, values := range set {
		if is(name) {
			name = http.CanonicalHeaderKey(strings.TrimPrefix(name, http.TrailerPrefix))
			trailer[name] = append(trailer[name], values...)
		}
	}
	return trailer
}

// StoredTrailer is what may be stored of a trailer, or why the whole response may not be: a trailer is under the rules for its header.
func (s *Settings) StoredTrailer(trailer http.Header, sent http.Header, without []string) (stored []record.Pair, unfit string) {
	stored = record.Pairs(trailer, Unstorable(sent, without))
	switch {
	case !s.StoreSetCookie && slices.ContainsFunc(stored, func(p record.Pair) bool { return p.Name == "Set-Cookie" }):
		return nil, setCookie
	case !record.Clean(stored) || !record.Fits(trailer):
		return nil, badField
	}
	return stored, ""
}
