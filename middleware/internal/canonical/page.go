package canonical

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// place is what a canonical request asks for: which page.
type place struct {
	scheme, host string // as the client or a middleware in front of the cache named them
	connection   string // the scheme of the connection; it counts too, as handlers can see it
	path, query  string // the query with its question mark
}

// Request is what counts of a request's host and URL, as a request: every other one that asks for the same page is the same to a handler. It
// is the request itself if all of it counts.
func (n *Namer) Request(r *http.Request) *http.Request {
	u, host, line := *r.URL, strings.ToLower(r.Host), r.RequestURI
	u.Scheme, u.Host, u.OmitHost, u.Fragment, u.RawFragment = strings.ToLower(u.Scheme), strings.ToLower(u.Host), false, "", ""
	host = cmp.Or(host, u.Host)
	if u.RawPath != "" && u.RawPath == (&url.URL{Path: u.Path}).EscapedPath() {
		u.RawPath = ""
	}
	u.ForceQuery = u.ForceQuery && u.RawQuery == ""
	if n.trims() || n.set.SortQuery {
		query := n.normalQuery(queryOf(&u))
		u.RawQuery, u.ForceQuery = strings.TrimPrefix(query, "?"), query == "?"
		if i := strings.IndexByte(line, '?'); i >= 0 {
			line = line[:i] + n.normalQuery(line[i:])
		}
	}
	if u == *r.URL && host == r.Host && line == r.RequestURI {
		return r
	}
	changed := *r
	changed.URL, changed.Host, changed.RequestURI = new(u), host, line
	return &changed
}

// Form is the form of a canonical request: of its query alone, whoever read it in front. If the query is malformed, the handler is to find
// that out.
func Form(r *http.Request) {
	r.Form, r.PostForm, r.MultipartForm = nil, nil, nil
	if r.ParseForm() != nil {
		r.Form, r.PostForm = nil, nil
	}
}

// Location is the URL of the page that a request asks for; the beginning and a digest of a long one.
func (n *Namer) Location(r *http.Request) string { return placeOf(n.Request(r)).location() }

// Split is the location of the path that a canonical request asks for, and its query.
func Split(r *http.Request) (path, query string) {
	p := placeOf(r)
	query, p.query = p.query, ""
	return p.location(), query
}

// Origin is the scheme and host of a location, as Base has them.
func Origin(location string) string {
	scheme, rest, _ := strings.Cut(location, "://")
	scheme, _, _ = strings.Cut(scheme, "+") // of the connection
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// Base is the URL that references in the response to a request are relative to.
func (n *Namer) Base(r *http.Request) url.URL {
	p := placeOf(n.Request(r))
	base := url.URL{Scheme: p.scheme, Host: p.host, Path: r.URL.Path, RawPath: r.URL.RawPath}
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		base.Path, base.RawPath = asked.Path, asked.RawPath
	}
	return base
}

func (p place) location() string { return condensed(p.locationAfter("")) }

func (p place) locationAfter(prefix string) string {
	scheme := p.scheme
	if scheme != p.connection {
		scheme += "+" + p.connection
	}
	return prefix + scheme + "://" + p.host + p.path + p.query
}

// placeOf is what a canonical request asks for. The path and the query come from the request line, if there is one: a router in front may
// have removed the part of the URL that tells applications apart.
func placeOf(r *http.Request) place {
	p := place{scheme: r.URL.Scheme, host: r.Host, connection: "http"}
	if r.TLS != nil {
		p.connection = "https"
	}
	p.scheme = cmp.Or(p.scheme, p.connection)
	var sent bool
	if p.path, p.query, sent = requestLine(r); !sent {
		p.path, p.query = escapedPath(r.URL), queryOf(r.URL)
	}
	return p
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
	if i := strings.IndexByte(r.RequestURI, '?'); i >= 0 {
		return r.RequestURI[:i], r.RequestURI[i:], true
	}
	return r.RequestURI, "", true
}

// rewritten is what the handler of a canonical request sees of the URL beside its location: how the client wrote it, if not in origin form, as handlers copy
// that into links and redirects; the host, if a middleware in front has set one; and the path and query that a router has made.
func rewritten(r *http.Request) (seen string) {
	path, query, ok := requestLine(r)
	if !ok {
		return ""
	}
	if r.RequestURI[0] != '/' {
		seen = r.RequestURI + Separator
	}
	if r.URL.Host != "" {
		seen += "//" + r.URL.Host
	}
	if r.URL.RawPath == "" && r.URL.EscapedPath() == path && isQueryOf(r.URL, query) {
		return seen
	}
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && u.Path == r.URL.Path && u.RawPath == r.URL.RawPath && queryOf(u) == queryOf(r.URL) {
		return seen
	}
	seen += escapedPath(r.URL) + Separator
	if isQueryOf(r.URL, query) {
		return seen // the query is the page's
	}
	return seen + "?" + queryOf(r.URL)
}

// escapedPath is a path as it was sent. (EscapedPath alone turns a badly escaped path into that of another page.)
func escapedPath(u *url.URL) string {
	path := u.EscapedPath()
	if raw := u.RawPath; raw != "" && raw != path {
		path += Separator + raw
	}
	return path
}

// isQueryOf reports whether queryOf would return the query.
func isQueryOf(u *url.URL, query string) bool {
	if u.RawQuery != "" || u.ForceQuery {
		return len(query) > 0 && query[1:] == u.RawQuery
	}
	return query == ""
}

// queryOf is the query of a URL, with its question mark.
func queryOf(u *url.URL) string {
	if u.RawQuery != "" || u.ForceQuery {
		return "?" + u.RawQuery
	}
	return ""
}

// normalQuery is the part of a query that tells pages apart. It sorts the parameters by the names that handlers read, if SortQuery is set. A
// query with a semicolon stays in its order: handlers do not agree on what that separates.
func (n *Namer) normalQuery(query string) string {
	if query == "" {
		return ""
	}
	params := strings.Split(query[1:], "&")
	if n.trims() {
		params = slices.DeleteFunc(params, func(param string) bool { return !n.counts(paramName(param)) })
	}
	if len(params) == 0 {
		return ""
	}
	query = strings.Join(params, "&")
	if n.set.SortQuery && !strings.Contains(query, ";") {
		slices.SortStableFunc(params, func(a, b string) int { return strings.Compare(paramName(a), paramName(b)) })
		query = strings.Join(params, "&")
	}
	return "?" + query
}

// counts reports whether a parameter tells pages apart.
func (n *Namer) counts(name string) bool {
	return !named(n.set.IgnoreQuery, name) && (len(n.set.OnlyQuery) == 0 || named(n.set.OnlyQuery, name))
}

// trims reports whether there are parameters that do not tell pages apart.
func (n *Namer) trims() bool { return len(n.set.IgnoreQuery)+len(n.set.OnlyQuery) > 0 }

// named reports whether a name is in a list. There, a star at the end stands for any text.
func named(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, prefix)
	})
}

func paramName(param string) string {
	name, _, _ := strings.Cut(param, "=")
	if decoded, err := url.QueryUnescape(name); err == nil {
		return decoded
	}
	return name
}

// TooLong reports whether the URL of a request is too long to have a page.
func (n *Namer) TooLong(r *http.Request) bool { return len(r.RequestURI)+len(r.Host) > n.set.MaxURL }

// Odd reports whether a request names its page in a way that is never needed and could be confused with another page: a URL with a user
// or without a path, or a Host with characters that end a host.
func (n *Namer) Odd(r *http.Request) bool {
	return r.URL.Opaque != "" || r.URL.User != nil || strings.ContainsAny(r.Host, "/?#@\\\n") || strings.Contains(r.URL.Scheme, "+")
}
