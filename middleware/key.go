package middleware

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cacheguard/go/middleware/internal/record"
)

const (
	// maxKey is the length of the longest key that is used as it is.
	maxKey = 512

	// maxURL is the length of the longest URL that has a page: records name it in Redis, and clients choose it.
	maxURL = 8 << 10

	// beyond stands in keys where no URL, field or tag can have anything: net/http refuses control characters in all of them.
	beyond = "\n"
)

// key is the name of something in the Guard: what it is, the Space it belongs to, and the rest.
func (c *Config) key(what, rest string) string { return shorten(c.kind(what) + rest) }

// kind begins the keys of what is of one kind.
func (c *Config) kind(what string) string {
	if c.Space != "" {
		what += "@" + c.Space
	}
	return what + ":"
}

// pageKey is the key of the page at a location.
func (c *Config) pageKey(location string) string { return shorten(c.pages + location) }

// pageAt is the key of the page at a place, and its location, which is a part of the same memory.
func (c *Config) pageAt(p place) (key, location string) {
	whole := p.locationAfter(c.pages)
	return shorten(whole), whole[len(c.pages):]
}

// variantKey is the key of the variant of a page with these values of the fields that select it.
func (c *Config) variantKey(location string, vary []record.Pair) string {
	var b strings.Builder
	for _, p := range vary {
		b.WriteString(p.Name + "=" + p.Value + beyond)
	}
	return c.key("variant", location+beyond+digest(b.String()))
}

// shorten keeps keys readable and short. A part that is left out is in the digest. (A record names its location in full, so
// that nothing depends on two keys being different.)
func shorten(key string) string {
	if len(key) <= maxKey {
		return key
	}
	return key[:maxKey/2] + beyond + digest(key)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// place is what a request is for.
type place struct {
	scheme, host string // as the client named them, or a middleware in front
	connection   string // the scheme of the connection: handlers can tell it from the other, so it counts too
	path, query  string // as they were sent; the query with its question mark
}

// location is the URL of a page, as it was asked for.
func (p place) location() string { return p.locationAfter("") }

func (p place) locationAfter(prefix string) string {
	scheme := p.scheme
	if scheme != p.connection {
		scheme += "+" + p.connection
	}
	return prefix + scheme + "://" + p.host + p.path + p.query
}

// placeOf is where the client's request goes. The path and the query are those of the request line where there is one: a router
// in front may have taken a part of the URL away, by which others tell their pages apart.
func (c *Config) placeOf(r *http.Request) place {
	p := c.placeOfURL(r, r.URL)
	if path, query, ok := requestLine(r); ok {
		p.path, p.query = path, c.normalQuery(query)
	}
	return p
}

// placeOfURL is where a request for the URL goes.
func (c *Config) placeOfURL(r *http.Request, u *url.URL) place {
	p := place{scheme: strings.ToLower(u.Scheme), host: strings.ToLower(r.Host), connection: connection(r)}
	if p.scheme == "" {
		p.scheme = p.connection
	}
	if p.host == "" {
		p.host = strings.ToLower(u.Host)
	}
	p.path, p.query = escapedPath(u), c.normalQuery(queryOf(u))
	return p
}

// connection is the scheme that a request was sent with.
func connection(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// requestLine is the path and query of a request as they were sent.
func requestLine(r *http.Request) (path, query string, ok bool) {
	if r.RequestURI == "" { // a server did not receive it
		return "", "", false
	}
	if r.RequestURI[0] != '/' {
		u, err := url.ParseRequestURI(r.RequestURI)
		if err != nil {
			return "", "", false // it names no page
		}
		return escapedPath(u), queryOf(u), true
	}
	path, query, found := strings.Cut(r.RequestURI, "?")
	if found {
		query = "?" + query
	}
	return path, query, true
}

// rewritten is the URL that the handler sees, where that is another one than the client asked for.
func (c *Config) rewritten(r *http.Request) string {
	path, query, ok := requestLine(r)
	if !ok || r.URL.RawPath == "" && r.URL.Path == path && queryOf(r.URL) == query {
		return ""
	}
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && u.Path == r.URL.Path && u.RawPath == r.URL.RawPath && queryOf(u) == queryOf(r.URL) {
		return ""
	}
	return escapedPath(r.URL) + c.normalQuery(queryOf(r.URL))
}

// escapedPath is a path as it was sent. (Of one that was not escaped well, EscapedPath makes another's.)
func escapedPath(u *url.URL) string {
	path := u.EscapedPath()
	if raw := u.RawPath; raw != "" && raw != path {
		path += beyond + raw
	}
	return path
}

// queryOf is the query of a URL, with its question mark.
func queryOf(u *url.URL) string {
	if u.RawQuery != "" || u.ForceQuery {
		return "?" + u.RawQuery
	}
	return ""
}

// normalQuery sorts the parameters of a query, where that is wanted, by their names as handlers read them. One with a semicolon
// stays as it is: handlers do not agree on what that separates.
func (c *Config) normalQuery(query string) string {
	if !c.SortQuery || !strings.Contains(query, "&") || strings.Contains(query, ";") {
		return query
	}
	params := strings.Split(query[1:], "&")
	slices.SortStableFunc(params, func(a, b string) int { return strings.Compare(paramName(a), paramName(b)) })
	return "?" + strings.Join(params, "&")
}

func paramName(param string) string {
	name, _, _ := strings.Cut(param, "=")
	if decoded, err := url.QueryUnescape(name); err == nil {
		return decoded
	}
	return name
}

// odd reports whether a request names its page in a way that is never needed, and that keys could be mistaken in: a URL with
// a user or without a path, a Host with what ends a host, or one that is too long.
func odd(r *http.Request) bool {
	return len(r.RequestURI) > maxURL || r.URL.Opaque != "" || r.URL.User != nil || strings.ContainsAny(r.Host, "/?#@\\\n") || strings.Contains(r.URL.Scheme, "+")
}
