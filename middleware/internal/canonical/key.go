// Package canonical has what tells pages apart, computed once, as a request. Two requests that ask for the same page, and select the same
// variant of it, are one canonical request: keys are made of it alone, and the handler of a page gets it, byte for byte. So what does not
// count reaches no handler in any form, and no client chooses what others read.
//
// Request has the URL and the host (page.go), Header the fields (field.go), each in its one notation. What a response has to name in its
// Vary counts only if it does (vary.go); what frameworks believe without that counts always (selection.go).
package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
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
	whole := placeOf(r).locationAfter(n.pages)
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

// Keys are those under which the page that a request asks for may be stored, whichever connection the instances were asked through.
func (n *Namer) Keys(r *http.Request) (keys []string) {
	p := placeOf(n.Request(r))
	named := r.URL.Scheme != ""
	for _, p.connection = range []string{"http", "https"} {
		if !named {
			p.scheme = p.connection
		}
		all := p
		all.query = searched
		keys = append(keys, n.PageKey(p.location()), n.PageKey(all.location()))
	}
	return keys
}

// AllKeys are Keys for every scheme that clients may have used: behind a proxy that ends TLS, the instances do not know it. A router may
// also have made another URL of the one that the client asked for.
func (n *Namer) AllKeys(r *http.Request) (keys []string) {
	for _, scheme := range []string{r.URL.Scheme, "http", "https"} {
		u := *r.URL
		u.Scheme = scheme
		keys = append(keys, n.Keys(&http.Request{URL: &u, Host: r.Host})...)
		if r.RequestURI != "" {
			keys = append(keys, n.Keys(&http.Request{URL: &u, Host: r.Host, RequestURI: r.RequestURI})...)
		}
	}
	return rules.Sorted(keys)
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
