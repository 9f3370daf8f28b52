package canonical

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Request is what counts of a request's host and URL, as a request: every other one that asks for the same page is the same to a handler, but for
// what Unnamed tells apart. It is the request itself if all of it counts.
func (n *Namer) Request(r *http.Request) *http.Request {
	u, line := *r.URL, r.RequestURI
	u.Scheme, u.OmitHost, u.Fragment, u.RawFragment = strings.ToLower(u.Scheme), false, "", ""
	scheme := cmp.Or(u.Scheme, connection(r))
	host := normalHost(cmp.Or(n.set.Host, r.Host, u.Host), scheme)
	u.Host = normalHost(u.Host, scheme)
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
	changed, page := *r, u
	changed.URL, changed.Host, changed.RequestURI = &page, host, line
	return &changed
}

// connection is the scheme of a request's connection.
func connection(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// Settle gives what does not count of a canonical request its one form: what is neither URL, Host nor field. The form is of the query alone, whoever
// read it in front; if the query is malformed, the handler is to find that out. Of TLS, the client's certificate and what only this connection can
// have stay. The context, the address and what a router in front has found out belong to the client that caused the load.
func Settle(r *http.Request) {
	r.Method, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Close = http.MethodGet, "HTTP/1.1", 1, 1, false
	r.Body, r.GetBody, r.Trailer, r.Response, r.Cancel = http.NoBody, nil, nil, nil, nil //nolint:staticcheck // handlers may read Cancel
	r.Form, r.PostForm, r.MultipartForm = nil, nil, nil
	if r.ParseForm() != nil {
		r.Form, r.PostForm = nil, nil
	}
	if r.TLS == nil {
		return
	}
	s := *r.TLS
	s.Version, s.HandshakeComplete, s.DidResume, s.ECHAccepted = tls.VersionTLS13, true, false, false
	settleRetry(&s)
	s.CipherSuite, s.CurveID, s.ServerName = tls.TLS_AES_128_GCM_SHA256, tls.X25519, (&url.URL{Host: r.Host}).Hostname()
	s.NegotiatedProtocol, s.NegotiatedProtocolIsMutual = "http/1.1", true //nolint:staticcheck // it always is
	s.SignedCertificateTimestamps, s.OCSPResponse, s.TLSUnique = nil, nil, nil
	r.TLS = &s
}

// Location is the name of the page that a request asks for.
func (n *Namer) Location(r *http.Request) string { return nameIn(n.Request(r)).location() }

// Split is the location of the path that a canonical request asks for, and its query.
func Split(r *http.Request) (path, query string) {
	p := nameIn(r)
	query, p.query = p.query, ""
	return p.location(), query
}

// Site is the host of a location, as locations begin.
func Site(location string) string {
	host, _, _ := strings.Cut(location[len("//"):], "/")
	return "//" + host
}

// nameIn is the name of the page that a canonical request asks for.
func nameIn(r *http.Request) name {
	path, query := line(r)
	return nameOf(r.Host, path, query)
}

// line is the path and query of a request as they were sent: those of the request line, if there is one, as a router in front may have removed
// the part of the URL that tells applications apart.
func line(r *http.Request) (path, query string) {
	u := r.URL
	switch sent := r.RequestURI; {
	case sent == "": // no server received it
	case sent[0] == '/':
		if i := strings.IndexByte(sent, '?'); i >= 0 {
			return sent[:i], sent[i:]
		}
		return sent, ""
	default:
		if asked, err := url.ParseRequestURI(sent); err == nil { // else it names no page
			u = asked
		}
	}
	if path, err := url.PathUnescape(u.RawPath); err == nil && path == u.Path {
		return u.RawPath, queryOf(u) // EscapedPath alone turns a badly escaped path into that of another page
	}
	return u.EscapedPath(), queryOf(u)
}

// seen is what the handler of a canonical request sees of the URL beside the name of the page: how the client wrote it, if not as in the name, as
// handlers copy that into links and redirects; the host, if a middleware in front has set one; and the path and query that a router has made. The
// notation of the query is for itself.
func seen(r *http.Request) (rest, query string) {
	path, query := line(r)
	named, whole, touched := nameOf("", path, query), "", ""
	if r.RequestURI != "" && r.RequestURI[0] != '/' {
		whole = r.RequestURI
	}
	if !isUntouched(r, path, query) {
		touched = "=" + escapedPath(r.URL)
		if !isQueryOf(r.URL, query) { // else the query is the page's
			touched += Separator + "?" + queryOf(r.URL)
		}
	}
	if path == named.path {
		path = ""
	}
	if query == named.query {
		query = ""
	}
	if whole+path+r.URL.Host+touched == "" {
		return "", query
	}
	return fmt.Sprintf("%q", []string{whole, path, r.URL.Host, touched}), query
}

// isUntouched reports whether the URL is what net/http makes of that line.
func isUntouched(r *http.Request, path, query string) bool {
	u := r.URL
	if r.RequestURI == "" || u.RawPath == "" && u.EscapedPath() == path && isQueryOf(u, query) {
		return true
	}
	made, err := url.ParseRequestURI(r.RequestURI)
	return err == nil && made.Path == u.Path && made.RawPath == u.RawPath && queryOf(made) == queryOf(u)
}

// escapedPath is a path as it was sent. (EscapedPath alone turns a badly escaped path into that of another page.)
func escapedPath(u *url.URL) string {
	path := u.EscapedPath()
	if raw := u.RawPath; raw != "" && raw != path {
		path += Separator + raw
	}
	return path
}

// isQueryOf reports whether queryOf would return the query. It allocates nothing: each request asks.
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
	return r.URL.Opaque != "" || r.URL.User != nil || strings.ContainsAny(r.Host, "/?#@\\\n")
}
