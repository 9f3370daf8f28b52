package middleware

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// maxKey is the length of the longest key that is used as it is.
const maxKey = 512

// alwaysKeyed are request fields that often shape what a handler answers though no Vary says so: who sends one gets a
// response of its own. (Caches are poisoned with these.)
var alwaysKeyed = []string{
	"Forwarded", "Front-End-Https", "X-Forwarded-Host", "X-Forwarded-Method", "X-Forwarded-Path", "X-Forwarded-Port",
	"X-Forwarded-Prefix", "X-Forwarded-Proto", "X-Forwarded-Protocol", "X-Forwarded-Scheme", "X-Forwarded-Server",
	"X-Forwarded-Ssl", "X-Forwarded-Uri", "X-Host", "X-Http-Host-Override", "X-Http-Method", "X-Http-Method-Override",
	"X-Method-Override", "X-Original-Host", "X-Original-Method", "X-Original-Uri", "X-Original-Url", "X-Rewrite-Url",
	"X-Scheme", "X-Script-Name", "X-Url-Scheme",
}

// class keeps responses for requests that tell who asks apart from those for anybody.
type class string

const (
	anybody class = "page:"
	somefew class = "page-auth:"
)

// class is that of a request.
func (c *Config) class(r *http.Request) class {
	if len(r.Header["Authorization"]) > 0 || (c.DefaultTTL > 0 || c.Heuristic > 0) && len(r.Header["Cookie"]) > 0 {
		return somefew
	}
	return anybody
}

// odd reports whether a request names its page in a way that is never needed, and that keys could be mistaken in: a URL with
// a user or without a path, or a Host with what ends a host.
func odd(r *http.Request) bool {
	return r.URL.Opaque != "" || r.URL.User != nil || strings.ContainsAny(r.Host, `/?#@\`)
}

// connection is the scheme that a request was sent with.
func connection(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// site is the scheme and host that a request is for. A client may name any scheme, as may a middleware in front.
func site(r *http.Request) (scheme, host string) {
	scheme, host = strings.ToLower(r.URL.Scheme), r.Host
	if scheme == "" {
		scheme = connection(r)
	}
	if host == "" {
		host = r.URL.Host
	}
	return scheme, strings.ToLower(host)
}

// location is the URL of a page, as it was sent.
func (c *Config) location(r *http.Request) string { return c.locationOver(connection(r), r) }

// locationOver is the location for those whose connection has that scheme. Handlers can tell it from the one that was named,
// so it counts too.
func (c *Config) locationOver(connection string, r *http.Request) string {
	scheme, host := site(r)
	if scheme != connection {
		scheme += "+" + connection
	}
	query := r.URL.RawQuery
	if c.SortQuery && strings.Contains(query, "&") {
		params := strings.Split(query, "&")
		slices.SortStableFunc(params, func(a, b string) int { return strings.Compare(paramName(a), paramName(b)) })
		query = strings.Join(params, "&")
	}
	if query != "" || r.URL.ForceQuery {
		query = "?" + query
	}
	return scheme + "://" + host + path(r) + query
}

// path is the path as it was sent. (Of one that was not escaped well, EscapedPath makes another's.)
func path(r *http.Request) string {
	path := r.URL.EscapedPath()
	if raw := r.URL.RawPath; raw != "" && raw != path {
		path += "#" + raw
	}
	return path
}

func paramName(param string) string {
	name, _, _ := strings.Cut(param, "=")
	return name
}

// pageKey is the key of the page at a location.
func pageKey(c class, location string) string { return shorten(string(c) + location) }

// variantKey is the key of the variant of a page with these values of the fields that select it.
func variantKey(page string, vary []pair) string {
	var b strings.Builder
	for _, p := range vary {
		b.WriteString(p.name + "=" + p.value + "\n")
	}
	return "variant-" + shorten(page+"#"+digest(b.String()))
}

// shorten keeps keys readable and short. A part that is left out is in the digest.
func shorten(key string) string {
	if len(key) <= maxKey {
		return key
	}
	return key[:maxKey/2] + "#" + digest(key)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// selection is the values of the fields that select a response, of a request, by name.
func selection(r *http.Request, fields []string) []pair {
	list := make([]pair, 0, len(fields))
	for _, name := range fields {
		list = append(list, pair{name, normal(name, r.Header[name])})
	}
	for _, name := range alwaysKeyed {
		if lines := r.Header[name]; len(lines) > 0 && !slices.Contains(fields, name) {
			list = append(list, pair{name, normal(name, lines)})
		}
	}
	slices.SortFunc(list, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	return list
}

// normal makes equal what means the same (RFC 9111 section 4.1): lines are joined, and spaces, case and order do not count
// where they have no meaning. Any other field is told apart by its exact value. An absent field is not an empty one.
func normal(name string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	value := strings.Join(lines, ",")
	switch name {
	case "Accept": // its parameters may be quoted, and their case count
		if !strings.Contains(value, `"`) {
			value = strings.Join(members(value), ",")
		}
	case "Accept-Charset", "Accept-Language":
		value = strings.Join(members(strings.ToLower(value)), ",")
	case "Accept-Encoding":
		codings := members(strings.ToLower(value))
		slices.Sort(codings)
		value = strings.Join(codings, ",")
	}
	return "=" + value
}

// members is the members of a list, without spaces.
func members(value string) []string {
	list := fieldList([]string{value})
	for i, m := range list {
		list[i] = strings.Map(func(r rune) rune {
			if r == ' ' || r == '\t' {
				return -1
			}
			return r
		}, m)
	}
	return list
}

// varyFields is the fields that a response says it depends on, in canonical form.
func varyFields(h http.Header) (fields []string) {
	for _, name := range fieldList(h["Vary"]) {
		if name = http.CanonicalHeaderKey(name); !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}

// selects reports whether the request selects the record: it agrees in all fields that the response depends on, and in
// those that always count.
func (e *record) selects(r *http.Request) bool {
	matched := 0
	for _, p := range e.vary {
		if normal(p.name, r.Header[p.name]) != p.value {
			return false
		}
		if _, always := slices.BinarySearch(alwaysKeyed, p.name); always && p.value != "" {
			matched++
		}
	}
	for _, name := range alwaysKeyed {
		if len(r.Header[name]) > 0 {
			matched--
		}
	}
	return matched == 0
}

// fields is the names of the fields that select among the variants of the record's page.
func (e *record) fields() (names []string) {
	for _, p := range e.vary {
		names = append(names, p.name)
	}
	return names
}
