package canonical

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// name is the name of a page, made of a URL. The scheme is no part of it, as behind a proxy that ends TLS nobody knows that: it selects
// a variant, as do the notations of one name.
type name struct{ host, path, query string } // the query with its question mark

// nameOf is the one function that names a page, by the host, the path and the query of a URL, as they were sent: all that RFC 9110 section
// 4.2.3 and RFC 3986 section 6.2 call equivalent have one name.
func nameOf(host, path, query string) name {
	if path = escaped(path); !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return name{normalHost(host, ""), withoutDots(path), escaped(query)}
}

// location is the name as a text; the beginning and a digest of a long one.
func (n name) location() string { return condensed(n.after("")) }

func (n name) after(prefix string) string { return prefix + "//" + n.host + n.path + n.query }

// normalHost is a host without the default port of the scheme, or, if that is empty, of either scheme.
func normalHost(host, scheme string) string {
	if strings.Trim(host, inNames) == "" && !strings.HasSuffix(host, ".") {
		return host // most are
	}
	host, port := strings.ToLower(host), ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if strings.Trim(host[i+1:], "0123456789") != "" || strings.IndexByte(host, ':') < i && host[i-1] != ']' {
			return host // it is no host
		}
		if host, port = host[:i], strings.TrimLeft(host[i:], ":0"); port == "80" && scheme != "https" || port == "443" && scheme != "http" {
			port = ""
		}
	}
	if port != "" {
		port = ":" + port
	}
	return normalDomain(host) + port
}

// IsHost reports whether a text is a host, perhaps with a port.
func IsHost(text string) bool {
	u, err := url.Parse("//" + text)
	return err == nil && u.Host != "" && u.User == nil && u.Path+u.RawQuery+u.Fragment == ""
}

// normalDomain is a host without its port: an address of IPv6 in its shortest form, a name without the dot of the root, and with IDNA as it is
// sent.
func normalDomain(host string) string {
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && host[0] == '[' {
		return "[" + address.WithZone("").String() + "]"
	}
	if strings.ContainsFunc(host, func(c rune) bool { return c == '%' || c > '~' }) {
		host = punycode(host)
	}
	if !strings.HasSuffix(host, "..") { // that is no name, and two dots are not one
		host = strings.TrimSuffix(host, ".")
	}
	return host
}

// punycode is an international name as clients of net/http send it; any other text as it is.
func punycode(host string) string {
	var sent strings.Builder
	u, err := url.Parse("//" + host) // it may be escaped
	if err != nil || !utf8.ValidString(u.Host) || (&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Host: u.Host}).Write(&sent) != nil {
		return host
	}
	_, line, _ := strings.Cut(sent.String(), "\r\nHost: ")
	if line, _, _ = strings.Cut(line, "\r\n"); strings.Trim(line, inNames) != "" {
		return host
	}
	return line
}

const (
	unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
	inNames    = "abcdefghijklmnopqrstuvwxyz0123456789-."
	unescaped  = unreserved + "!$&'()*+,;=:@/?" // within a path or a query
)

// plain are the characters that are never escaped in a path or a query.
var plain = func() (set [256]bool) {
	for _, c := range []byte(unescaped) {
		set[c] = true
	}
	return set
}()

// escaped is a path or a query in which only what must be escaped is, in capitals.
func escaped(text string) string {
	if strings.IndexFunc(text, func(c rune) bool { return c > '~' || !plain[c] }) < 0 {
		return text
	}
	var all []byte
	for i := 0; i < len(text); i++ {
		c, sent := text[i], false
		if c == '%' && i+2 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				c, sent, i = byte(code), true, i+2
			}
		}
		if plain[c] && (!sent || strings.IndexByte(unreserved, c) >= 0) {
			all = append(all, c)
		} else {
			all = fmt.Appendf(all, "%%%02X", c)
		}
	}
	return string(all)
}

// AsSent is a URL as clients send it: package url forgets how the rest of a path was escaped, if something in it is not that must be.
func AsSent(text string) string {
	var all []byte
	for _, c := range []byte(text) {
		if plain[c] || strings.IndexByte("%#[]", c) >= 0 {
			all = append(all, c)
		} else {
			all = fmt.Appendf(all, "%%%02X", c)
		}
	}
	return string(all)
}

// withoutDots is a path without the segments . and .. (RFC 3986 section 5.2.4).
func withoutDots(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	var kept []string
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		dots := segment == "." || segment == ".."
		if segment == ".." {
			kept = kept[:max(0, len(kept)-1)]
		}
		if !dots {
			kept = append(kept, segment)
		} else if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}
