package middleware

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware/internal/canonical"
)

// A random test of all notations: it draws two URLs, each as a request or as a URI, and asks whether they name one page. The judge knows of RFC 3986
// and RFC 9110 by net/url, net/netip and path, and nothing of package canonical.

// drawnURL is a URL in parts, as it is written.
type drawnURL struct {
	scheme, host, port, path, query string
	absolute                        bool // a request has it in its line
}

func drawURL(random *rand.Rand) drawnURL {
	of := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	u := drawnURL{
		scheme: of("http", "https"), absolute: random.IntN(4) == 0,
		host: of("shop.example", "shop.example", "SHOP.Example", "shop.example.", "shop.example..", "www.shop.example", "[::1]", "[0:0::0001]", "[::2]", "[::FFFF:1.2.3.4]", "[::ffff:102:304]", "xn--bcher-kva.example", "b%C3%BCcher.example", "127.0.0.1"),
		port: of("", "", "", ":", ":80", ":443", ":080", ":8080", ":08080"),
	}
	for range random.IntN(4) {
		u.path += "/" + of("a", "a", "b", "%61", "A", ".", "..", "%2e", "%2E%2e", "", "a%2fb", "a%2Fb", "%7e", "~", "%C3%A9", "%c3%a9", "é", "a;b", "a%3Bb", "a+b", "a%20b", "...", ".a")
	}
	if u.path == "" && !u.absolute {
		u.path = "/"
	}
	if random.IntN(3) == 0 {
		u.query = "?" + of("", "a", "a=b", "%61=%62", "a=%2f", "a=%2F", "a=/../b", "a=é", "a=%c3%a9", "a+b", "a%20b", "A", "a=[]", "a=%5B%5D", "a?b")
	}
	return u
}

func (u drawnURL) uri() string { return u.scheme + "://" + u.host + u.port + u.path + u.query }

// request is the URL as a server gets it.
func (u drawnURL) request() *http.Request {
	s := sent{u.scheme == "https", u.path + u.query, u.host + u.port}
	if u.absolute {
		s.target = u.uri()
	}
	return s.request(http.MethodGet)
}

// judged is the same text for URLs that are one page.
func (u drawnURL) judged() string {
	host := strings.ToLower(u.host)
	if strings.HasSuffix(host, ".") && !strings.HasSuffix(host, "..") {
		host = host[:len(host)-1]
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		host = address.StringExpanded()
	}
	if host == "b%c3%bccher.example" {
		host = "xn--bcher-kva.example"
	}
	port := strings.TrimLeft(strings.TrimPrefix(u.port, ":"), "0")
	if port == "80" || port == "443" { // of http or of https, which nobody knows behind a proxy
		port = ""
	}
	segments := strings.Split(strings.TrimPrefix(u.path, "/"), "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			panic(s)
		}
		escaped := url.QueryEscape(plain)                       // %2F stays what it is
		for _, kept := range []string{"%3B", ";", "%2B", "+"} { // a delimiter is not its escape
			if strings.Contains(s, kept) {
				escaped += "!" + kept
			}
		}
		segments[i] = escaped
	}
	whole := "/" + strings.Join(segments, "/")
	if last := segments[len(segments)-1]; last == "." || last == ".." {
		whole += "/"
	}
	const empty = "\x00" // path.Clean would take two slashes for one
	whole = strings.ReplaceAll(strings.ReplaceAll(whole, "//", "/"+empty+"/"), "//", "/"+empty+"/")
	clean := path.Clean(whole)
	if strings.HasSuffix(whole, "/") && clean != "/" {
		clean += "/"
	}
	clean = strings.ReplaceAll(clean, empty, "")
	query := u.query
	if query != "" {
		plain, err := url.PathUnescape(query)
		if err != nil {
			panic(query)
		}
		query = plain
		if strings.Contains(u.query, "%2") { // an escaped slash or space is neither a slash nor a plus
			query += strings.ToUpper(u.query[strings.Index(u.query, "%2"):])
		}
	}
	return fmt.Sprint(host, " ", port, " ", clean, " ", query)
}

// namings are the ways in which the cache names a page, each as its keys.
func namings(t testing.TB, c *Cache, u drawnURL) map[string][]string {
	t.Helper()
	r := u.request()
	key, _ := c.names.Page(c.names.Request(r))
	all := map[string][]string{"a request": {key}, "Invalidate of a request": c.names.AllKeys(r), "an unsafe request": c.names.Keys(r)}
	made, err := http.NewRequest(http.MethodGet, u.uri(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all["Invalidate of a URI"] = c.names.AllKeys(made)
	warmed, err := received(t.Context(), u.uri(), nil)
	if err != nil {
		t.Fatal(err)
	}
	key, _ = c.names.Page(c.names.Request(warmed))
	all["Warm"] = []string{key}
	sitemap, err := Sitemap(strings.NewReader("<urlset><url><loc>" + strings.ReplaceAll(u.uri(), "&", "&amp;") + "</loc></url></urlset>"))
	expect.ErrorIs(t, err)
	warmed, err = received(t.Context(), sitemap[0], nil)
	expect.ErrorIs(t, err)
	key, _ = c.names.Page(c.names.Request(warmed))
	all["a sitemap"] = []string{key}
	other := u
	other.path, other.query, other.absolute = "/else", "", false
	asked := c.names.Asked(other.request())
	all["Location"] = c.names.KeysOf(&asked, u.uri())
	if u.path != "" && !strings.HasPrefix(u.path, "//") {
		all["a relative Location"] = c.names.KeysOf(&asked, u.path+u.query)
	}
	return all
}

// disagree draws so many pairs, and says where a way to name pages and the judge disagree. Name makes a URL what it is taken for.
func disagree(t testing.TB, c *Cache, tries int, name func(drawnURL) drawnURL) (same int, difference string) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	for range tries {
		one := drawURL(random)
		other := drawURL(random)
		switch random.IntN(4) {
		case 0:
			other.path, other.query = one.path, one.query
		case 1:
			other.host, other.port, other.path = one.host, one.port, one.path
		case 2:
			other.host, other.port, other.query = one.host, one.port, one.query
		}
		if other.path == "" && !other.absolute {
			other.path = "/"
		}
		if strings.HasPrefix(one.path+" ", "//") && one.absolute || strings.HasPrefix(other.path+" ", "//") && other.absolute {
			continue
		}
		key := namings(t, c, one)["a request"][0]
		is := one.judged() == other.judged()
		if is {
			same++
		}
		for way, keys := range namings(t, c, name(other)) {
			if slices.Contains(keys, key) != is {
				return same, fmt.Sprintf("%+v and, by %s, %+v: the judge says %v; %q, %q; %q", one, way, other, is, one.judged(), other.judged(), append(keys, key))
			}
		}
		// Groups are of a host.
		groups := canonical.Site(c.names.Location(one.request())) == canonical.Site(c.names.Location(name(other).request()))
		oneHost, _, _ := strings.Cut(one.judged(), " /")
		otherHost, _, _ := strings.Cut(other.judged(), " /")
		if groups != (oneHost == otherHost) {
			return same, fmt.Sprintf("the groups of %+v and %+v", one, other)
		}
	}
	return same, ""
}

func TestAllNotationsNameThePagesThatTheJudgeSays(t *testing.T) {
	t.Parallel()
	c, err := New(unasked(t), Config{})
	expect.ErrorIs(t, err)
	tries := expect.Samples(5_000, 20_000)
	same, difference := disagree(t, c, tries, func(u drawnURL) drawnURL { return u })
	if difference != "" {
		t.Error(difference)
	}
	if same < tries/50 {
		t.Errorf("only %d pairs of %d were one page", same, tries)
	}
	// Each of these is a mistake that was there, or might have been.
	for name, plant := range map[string]func(u *drawnURL){
		"a slash at the end":           func(u *drawnURL) { u.path = strings.TrimSuffix(u.path, "/") + "/" },
		"the default port":             func(u *drawnURL) { u.port = strings.Replace(u.port, ":80", ":81", 1) },
		"the port counts for nothing":  func(u *drawnURL) { u.port = "" },
		"the dot of the root":          func(u *drawnURL) { u.host = strings.Replace(u.host, "example.", "example..", 1) },
		"a slash is what it escapes":   func(u *drawnURL) { u.path = strings.ReplaceAll(u.path, "%2F", "/") },
		"the letters of escapes":       func(u *drawnURL) { u.path = strings.ReplaceAll(u.path, "%c3", "%c4") },
		"letters of a path":            func(u *drawnURL) { u.path = strings.ToLower(u.path) },
		"two slashes are one":          func(u *drawnURL) { u.path = strings.ReplaceAll(u.path, "//", "/") },
		"a plus is a space":            func(u *drawnURL) { u.query = strings.ReplaceAll(u.query, "+", "%20") },
		"an empty query is no query":   func(u *drawnURL) { u.query = strings.TrimSuffix(u.query, "?") },
		"dots of a query are a path's": func(u *drawnURL) { u.query = strings.ReplaceAll(u.query, "a=/../b", "b") },
		"another address":              func(u *drawnURL) { u.host = strings.Replace(u.host, "[::2]", "[::1]", 1) },
	} {
		if _, difference := disagree(t, c, 20_000, func(u drawnURL) drawnURL { plant(&u); return u }); difference == "" {
			t.Errorf("%s: not found", name)
		}
	}
}
