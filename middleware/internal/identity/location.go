package identity

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxURL is the length of the longest URL that has a page, with its host: records hold it in Redis, and clients choose it.
const maxURL = 8 << 10

// place is what a request asks for: which page.
type place struct {
	scheme, host string // as the client or a middleware in front of the cache named them
	connection   string // the scheme of the connection; it counts too, as handlers can see it
	path, query  string // as they were sent; the query with its question mark
}

// Location is the URL of the page that a request asks for.
func (n *Namer) Location(r *http.Request) string { return n.placeOf(r).location() }

// Base is the URL that references in the response to a request are relative to.
func (n *Namer) Base(r *http.Request) url.URL {
	p := n.placeOf(r)
	base := url.URL{Scheme: p.scheme, Host: p.host, Path: r.URL.Path, RawPath: r.URL.RawPath}
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		base.Path, base.RawPath = asked.Path, asked.RawPath
	}
	return base
}

func (p place) location() string { return p.locationAfter("") }

func (p place) locationAfter(prefix string) string {
	scheme := p.scheme
	if scheme != p.connection {
		scheme += "+" + p.connection
	}
	return prefix + scheme + "://" + p.host + p.path + p.query
}

// placeOf is what a request asks for. The path and the query are those of the request line, if there is one: a router in front may have
// removed the part of the URL that tells applications apart.
func (n *Namer) placeOf(r *http.Request) place {
	p := n.placeOfURL(r, r.URL)
	if path, query, ok := requestLine(r); ok {
		p.path, p.query = path, n.normalQuery(query)
	}
	return p
}

// placeOfURL is placeOf by the URL alone.
func (n *Namer) placeOfURL(r *http.Request, u *url.URL) place {
	p := place{scheme: strings.ToLower(u.Scheme), host: strings.ToLower(r.Host), connection: schemeOf(r)}
	if p.scheme == "" {
		p.scheme = p.connection
	}
	if p.host == "" {
		p.host = strings.ToLower(u.Host)
	}
	p.path, p.query = escapedPath(u), n.normalQuery(queryOf(u))
	return p
}

// schemeOf is the scheme of the connection that a request came through.
func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// requestLine is the path and query of a request as they were sent.
func requestLine(r *http.Request) (path, query string, ok bool) {
	if r.RequestURI == "" { // no server received it
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

// rewritten is what the handler sees of the URL beside its location: how the client wrote it, if not in origin form, as handlers copy
// that into links and redirects; the host, if a middleware in front has set one; and the path and query that a router has made.
func (n *Namer) rewritten(r *http.Request) (seen string) {
	path, query, ok := requestLine(r)
	if !ok {
		return ""
	}
	if r.RequestURI[0] != '/' {
		seen = r.RequestURI + Separator
	}
	if r.URL.Host != "" {
		seen += "//" + strings.ToLower(r.URL.Host)
	}
	if r.URL.RawPath == "" && r.URL.Path == path && queryOf(r.URL) == query {
		return seen
	}
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && u.Path == r.URL.Path && u.RawPath == r.URL.RawPath && queryOf(u) == queryOf(r.URL) {
		return seen
	}
	return seen + escapedPath(r.URL) + n.normalQuery(queryOf(r.URL))
}

// escapedPath is a path as it was sent. (EscapedPath alone turns a badly escaped path into that of another page.)
func escapedPath(u *url.URL) string {
	path := u.EscapedPath()
	if raw := u.RawPath; raw != "" && raw != path {
		path += Separator + raw
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

// normalQuery sorts the parameters of a query by the names that handlers read, if SortQuery is set. A query with a semicolon stays as it
// is: handlers do not agree on what that separates.
func (n *Namer) normalQuery(query string) string {
	if !n.set.SortQuery || !strings.Contains(query, "&") || strings.Contains(query, ";") {
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

// Odd reports whether a request names its page in a way that is never needed and could be confused with another page: a URL with a user
// or without a path, a Host with characters that end a host, or a URL that is too long.
func Odd(r *http.Request) bool {
	return len(r.RequestURI)+len(r.Host) > maxURL || r.URL.Opaque != "" || r.URL.User != nil || strings.ContainsAny(r.Host, "/?#@\\\n") || strings.Contains(r.URL.Scheme, "+")
}
