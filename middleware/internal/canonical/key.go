// Package canonical has what tells pages apart, computed once, as a request. Two requests that ask for the same page, and select the same
// variant of it, are one canonical request: keys are made of it alone, and the handler of a page gets it, byte for byte. So what does not
// count reaches no handler in any form, and no client chooses what others read.
//
// Request has the URL and the host (page.go), Header the fields (field.go), each in its one notation. What a response has to name in its
// Vary counts only if it does (vary.go); what frameworks believe without that counts always (selection.go).
package canonical

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

const (
	// maxKey is the length of the longest key that is used as it is.
	maxKey = 512

	// maxLocation is the length of the longest location that is used as it is.
	maxLocation = 384

	// maxValue is the length of the longest value of a field that is used as it is.
	maxValue = 256

	// Separator separates the parts of keys. No URL, field or tag contains it: net/http refuses control characters in all of
	// them.
	Separator = "\n"
)

// Settings say what makes two requests ask for different pages. The Config of package middleware documents them.
type Settings struct {
	Space                   string
	SortQuery, SortAccept   bool
	Guesses                 bool // responses may be fresh without saying so
	KeyFields, NotKeyFields []string
	IgnoreQuery, OnlyQuery  []string // names of parameters; a star at the end stands for any text
	Cookies                 []string
	Claim                   func(*http.Request) string
	Host                    string // of all requests; empty: each has its own
	MaxURL                  int
}

// Namer names pages.
type Namer struct {
	set       Settings
	keyFields map[string]struct{}
	pages     string // begins the keys of pages
}

// New returns a Namer.
func New(set Settings) *Namer {
	n := &Namer{set: set, keyFields: keyFields(set.KeyFields, set.NotKeyFields)}
	n.pages = n.kind("page")
	return n
}

// Key is the key of something else than a page in the Guard: what it is, the Space it belongs to, and its name.
func (n *Namer) Key(what, name string) string { return shorten(n.kind(what) + name) }

// kind begins the keys of one kind of thing.
func (n *Namer) kind(what string) string {
	if n.set.Space != "" {
		what += "@" + n.set.Space
	}
	return what + ":"
}

// Page is the key of the page that a canonical request asks for, and its location. Both share their memory.
func (n *Namer) Page(r *http.Request) (key, location string) {
	whole := nameIn(r).after(n.pages)
	if location = whole[len(n.pages):]; len(location) > maxLocation {
		location = condensed(location)
		return n.PageKey(location), location
	}
	return shorten(whole), location
}

// PageKey is the key of the page at a location.
func (n *Namer) PageKey(location string) string { return shorten(n.pages + location) }

// VariantKey is the key of the variant of a page with these values of the fields that select it.
func (n *Namer) VariantKey(location string, vary []record.Pair) string {
	var b strings.Builder
	for _, p := range vary {
		b.WriteString(p.Name + "=" + p.Value + Separator)
	}
	return n.Key("variant", location+digested(b.String()))
}

// Keys are those under which the page that a request asks for may be stored.
func (n *Namer) Keys(r *http.Request) []string {
	p := nameIn(n.Request(r))
	all := p
	all.query = searched
	return []string{n.PageKey(p.location()), n.PageKey(all.location())}
}

// AllKeys are Keys, also by the URL that a router may have made of the one that the client asked for.
func (n *Namer) AllKeys(r *http.Request) []string {
	made := *r
	made.RequestURI = ""
	return rules.Sorted(append(n.Keys(r), n.Keys(&made)...))
}

// Asked is what a request asks for, noted before its handler may change that.
type Asked struct {
	Keys    []string // of its page
	Site    string   // of its page
	base    url.URL  // what references in the response are relative to
	schemes []string // that the client may have used
}

// Asked notes it.
func (n *Namer) Asked(r *http.Request) Asked {
	a := Asked{Keys: n.Keys(r), Site: Site(n.Location(r)), base: *r.URL}
	if sent, err := url.ParseRequestURI(r.RequestURI); err == nil {
		a.base.Path, a.base.RawPath = sent.Path, sent.RawPath
	}
	a.base.Scheme, a.base.Host = cmp.Or(strings.ToLower(r.URL.Scheme), connection(r)), cmp.Or(r.Host, r.URL.Host)
	a.schemes = append([]string{a.base.Scheme}, rules.List(r.Header["X-Forwarded-Proto"])...)
	return a
}

// KeysOf are Keys of the page of the same origin that a field of the response refers to; none: it refers to none. The connection
// names the scheme, or a proxy in front does.
func (n *Namer) KeysOf(a *Asked, reference string) []string {
	u, err := url.Parse(AsSent(reference))
	if reference == "" || err != nil {
		return nil
	}
	u = a.resolve(u)
	isScheme := func(scheme string) bool { return strings.EqualFold(scheme, u.Scheme) }
	if !slices.ContainsFunc(a.schemes, isScheme) || normalHost(u.Host, u.Scheme) != normalHost(a.base.Host, u.Scheme) {
		return nil
	}
	return n.Keys(&http.Request{URL: u, Host: u.Host})
}

// resolve is the reference as a URL, with its dots: package url knows no dots that are escaped, and makes one slash of two behind others.
func (a *Asked) resolve(reference *url.URL) *url.URL {
	u, path, base := a.base.ResolveReference(reference), reference.EscapedPath(), a.base.EscapedPath()
	switch {
	case reference.Host != "" || strings.HasPrefix(path, "/"):
	case path == "":
		path = base
	default:
		path = base[:strings.LastIndexByte(base, '/')+1] + path
	}
	u.Path, _ = url.PathUnescape(path) // both have been parsed
	u.RawPath = path
	return u
}

// bounded is a text as it is, or, if it is longer than that, its beginning and a digest: clients choose its length, and Redis holds it. No
// other text gives the same.
func bounded(text string, most, beginning int) string {
	if len(text) <= most {
		return text
	}
	return text[:beginning] + digested(text)
}

func digested(text string) string {
	sum := sha256.Sum256([]byte(text))
	return Separator + hex.EncodeToString(sum[:])
}

// shorten keeps keys readable and short. (A record names its location, so nothing depends on different pages having different keys.)
func shorten(key string) string { return bounded(key, maxKey, maxKey/2) }

// condensed is a location that does not cost Redis more than a key does.
func condensed(location string) string { return bounded(location, maxLocation, maxLocation*2/3) }
