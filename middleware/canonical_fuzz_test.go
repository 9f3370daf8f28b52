package middleware

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware/internal/canonical"
)

// The rule of package canonical, as a differential test: it draws pairs of requests, as they are sent and as middlewares in front may have
// touched them, and settings. Where the keys are equal, all that a handler can read must be equal.

// draw takes choices from bytes; where there are no more, it takes the first.
type draw struct{ from []byte }

func (d *draw) n(choices int) int {
	if len(d.from) == 0 {
		return 0
	}
	c := int(d.from[0]) % choices
	d.from = d.from[1:]
	return c
}

func (d *draw) of(choices ...string) string { return choices[d.n(len(choices))] }

// varying are fields that a page may name in its Vary, with values of which some mean the same.
var varying = [][]string{
	{"Accept", "", "application/json", "application/json;q=1", "application/json;Q=1.000", "application/json ,text/html;q=0.5", "application/json, text/html;q=0.50", "text/html;q=.5", `a/b;p="x, y"`, "a/b;q=0.5;p=1", "a/b;p=1;q=0.5"},
	{"Accept-Language", "", "de-AT, en", "DE-at,en", "en,de-at", "zh-hant-tw", "zh-Hant-TW;q=1"},
	{"Accept-Encoding", "", "gzip", "GZIP", "gzip;q=1.0, br", "br,gzip"},
	{"Accept-Charset", "", "utf-8", "UTF-8"},
	{"Cookie", "", "theme=a", "theme=a; x=1", `theme="a"`, "theme=a\r\nCookie: x=1", "x=1"},
	{"X-Vary", "", "a,b", "a, b", "a\r\nX-Vary: b", `"a",b`, "/a,b", "/a, b", "/a\r\nX-Vary: b", "\"a\"\r\nX-Vary: b", strings.Repeat("a,", 3000), strings.Repeat("a,", 2999) + "a\r\nX-Vary: "},
	{"Forwarded", "", "for=a;host=x", "HOST=x ;by=b", "for=c", `host=x;for="[::1]:8"`, `for="a;host=x"`, "host=x, for=b", "host=y"},
}

// shapes are fields that count though no Vary names them.
var shapes = [][]string{
	{"X-Forwarded-Host", "", "a", "a, b", "a,b", "a\r\nX-Forwarded-Host: b"},
	{"X_forwarded_host", "", "a", "b"},
	varying[len(varying)-1],
}

// settings draws a Config, and what the page's Vary names.
func (d *draw) settings() (cfg Config, vary []string) {
	cfg = Config{SortQuery: d.n(2) == 1, SortAccept: d.n(2) == 1}
	switch d.n(3) {
	case 1:
		cfg.Key.IgnoreQuery = []string{"utm_*"}
	case 2:
		cfg.Key.OnlyQuery = []string{"id"}
	}
	if d.n(2) == 1 {
		cfg.Key.Cookies = []string{"theme"}
	}
	for _, field := range varying {
		if d.n(2) == 1 {
			vary = append(vary, field[0])
		}
	}
	return cfg, vary
}

// request draws a request as it is sent, and as middlewares in front may have touched it.
func (d *draw) request() *http.Request {
	var head strings.Builder
	query := d.of("", "", "?", "?id=1", "?id=1&utm_x=evil", "?utm_x=evil&id=1", "?%75tm_x=2&id=1", "?id=1&b=2", "?b=2&id=1", "?id=1;utm_x=3", "?id=%zz", "?_method=PUT", "?a=1;_m%65thod=PUT")
	path := d.of("/a", "/a", "/a%20b", "/%61", "/a/b", `/a"b`)
	target := d.of("", "", "http://shop.example", "http://SHOP.example", "https://shop.example", "HTTP://shop.example")
	fmt.Fprintf(&head, "GET %s HTTP/1.1\r\nHost: %s\r\n", target+path+query, d.of("shop.example", "Shop.Example", "shop.example", "other.example"))
	for _, field := range slices.Concat(varying, shapes[:2]) {
		if value := d.of(append([]string{""}, field[1:]...)...); value != "" {
			fmt.Fprintf(&head, "%s: %s\r\n", field[0], value)
		}
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head.String() + "\r\n")))
	if err != nil {
		return nil
	}
	if d.n(4) == 1 {
		r.TLS = new(tls.ConnectionState)
	}
	for range d.n(4) {
		d.touch(r)
	}
	return r
}

// touch is what one middleware in front does.
func (d *draw) touch(r *http.Request) {
	switch d.n(11) {
	case 0:
		_ = r.FormValue("id")
	case 1:
		_ = r.ParseForm() // a malformed query
	case 2:
		_ = r.ParseForm()
		r.Form.Set("utm_x", "set")
		r.PostForm = url.Values{"utm_x": {"posted"}}
	case 3:
		r.URL.Host, r.URL.Scheme = r.Host, d.of("http", "HTTP", "https")
	case 4:
		r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, "/a"), strings.TrimPrefix(r.URL.RawPath, "/a")
	case 5:
		r.URL.RawPath = d.of("", "/a%20b", r.URL.EscapedPath())
	case 6:
		r.URL.RawQuery = d.of("", "id=1", "id=1&utm_x=rewritten", r.URL.RawQuery)
	case 7:
		r.Host = d.of("SHOP.example", "", r.Host)
	case 8:
		r.URL.ForceQuery, r.URL.Fragment, r.URL.OmitHost = d.n(2) == 1, d.of("", "f"), d.n(2) == 1
	case 9: // a method that is overridden
		r.Header.Set("X-Http-Method-Override", "PUT")
	case 10:
		r.Close, r.Header["X-Vary"] = true, []string{"a", "b"}
	}
}

// readable is all that a handler can read of a request, but for fields and cookies that it would have to name.
func readable(r *http.Request, cfg Config, vary []string) string {
	var b strings.Builder
	u := *r.URL
	fmt.Fprintf(&b, "%s %#v %q %q tls=%v %v %v %v %v\n", r.Method, u, r.Host, r.RequestURI, r.TLS != nil, r.Form, r.PostForm, r.MultipartForm, r.Close)
	for _, name := range append([]string{shapes[0][0], shapes[1][0], shapes[2][0]}, vary...) {
		fmt.Fprintf(&b, "%s: %q\n", name, r.Header[name])
	}
	for _, name := range cfg.Key.Cookies {
		for _, cookie := range r.CookiesNamed(name) {
			fmt.Fprintf(&b, "%s=%q %v\n", cookie.Name, cookie.Value, cookie.Quoted)
		}
	}
	err := r.ParseForm()
	fmt.Fprintf(&b, "%v %q %v", err, r.FormValue("utm_x"), r.Form)
	return b.String()
}

// asks is a request's key, and the request that the handler of its page gets. Not ok: the request is not answered from the cache.
type asks func(guard *cacheguard.Guard, cfg Config, vary []string, r *http.Request) (key string, handed *http.Request, ok bool)

// honest is how the cache does it.
func honest(guard *cacheguard.Guard, cfg Config, vary []string, r *http.Request) (string, *http.Request, bool) {
	cache, err := New(guard, cfg)
	if err != nil {
		panic(err)
	}
	x := &exchange{request: request{cache: cache, r: r}, w: httptest.NewRecorder()}
	if x.personal() {
		return "", nil, false
	}
	x.identify(nil)
	if canonical.OverridesMethod(x.r, x.unnamed) {
		return "", nil, false
	}
	return x.key + "\n" + x.location + "\n" + fmt.Sprint(cache.names.Selection(x.r, vary, x.unnamed)), x.newLookup(variant{}, "").request(r.Context()), true
}

// differs reports whether two drawn requests have one key, and how what their handler can read differs.
func differs(guard *cacheguard.Guard, ask asks, settings, one, other []byte) (same bool, difference string) {
	cfg, vary := (&draw{settings}).settings()
	a, b := (&draw{one}).request(), (&draw{other}).request()
	if a == nil || b == nil {
		return false, ""
	}
	keyA, handedA, okA := ask(guard, cfg, vary, a)
	keyB, handedB, okB := ask(guard, cfg, vary, b)
	if !okA || !okB || keyA != keyB {
		return false, ""
	}
	if readA, readB := readable(handedA, cfg, vary), readable(handedB, cfg, vary); readA != readB {
		return true, fmt.Sprintf("%+v, Vary: %v, key %q\n%s\n%s", cfg.Key, vary, keyA, readA, readB)
	}
	return true, ""
}

func unasked(t testing.TB) *cacheguard.Guard {
	t.Helper()
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{Prefix: "unasked"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	return guard
}

func FuzzEqualKeysAreEqualRequests(f *testing.F) {
	guard := unasked(f)
	for _, found := range [][3]string{
		{
			";x\x8c\xba\xb3\xe8\xc1\xd2b*\x13\xad",
			"0\x83 \xba\xc0\xd4q\xfdM\x97\xfa\x1a\xcd`A\xc9\x1a\xcdn\xdf\t@\x8f\\",
			"0\x05 \xbaH\xd4q\xfdM\x97\xfa\x1a\xcd`A\xc9\x1a\xcdn\xdf\t@\x8f\\",
		},
		{
			"p1k\xb0Ӗȧ\xdb\xdf\f\x15",
			"5sr\x00a\xc0y\xbf\x88\x05L/\xd3i\xfc<\xa4\xe0y\xfc\xbb\x1e\x85\xe5",
			"5sr\x00A\xc0y\xbf\x88\x05L/\xd3i\xfc<\xa4\xe0y\xfc\xbbυ\xe5",
		},
		{
			"\xcf\rɰ\xc5\xc8\x1a\xa3oe\x10C",
			"\x7f\xcc\x17d?\xe8\x83\xce~\xc5:d\x05\xb1\xb1v\x8c\x87[ݠ$\xf34",
			"\x7f\xcc\x17d?\xe8\x83\xce~\xc5:d\x05\xb1>v\x8c\x87[ݠ$\xf34",
		},
		{
			"\xd5\x1c\xdd0\x9b\x04\xa1\xe8}\xf6\r~",
			"\xfc!\xa3\xc2h\xa2J\x01hHx\xaf}\xf9\xe5k\xf2\xb0\\t\xd0c(_",
			"\xfc!\xa3\xc2h\xa2J\x01hHx\xaf}\xf9\xe5\f\xf2\xb0\\t\xd0c(_",
		},
		{
			"\x82I\xf7\x85\xbf\xaa\xef\xa6\nQ\x1bf",
			"o\x04\xd1\xefi\xff\xc0F\xac\xf5\r#\xa6Y\x85\x04\x9e\xfekm\xd0j\xd2\xcf",
			"o\x04\xd1\xefi\xff\xc0F\xac\xf5$#\xa6Y\x85\x04\x9e\xfekm\xd0j3\xcf",
		},
		{
			"ӴÇ\x03\x00A\x0e\xdef\xb6\xce",
			"\x10Ё\xa2@\xe7\x195\xd2\xcd\x15y,w\xdc\xda\x1b^lQ\x0ez\xa3$",
			"\x10Ё\xa2@\xe7\x195\xd2\xcd\xc2y,w\xdc\xda\x1b^lQ\x0ez\xa3$",
		},
		{
			"\x95\x81\xe9\xfe*\xcf_ע\xf3\xbf\x8c",
			"\xc2\xc3\xd2\xe0\xe5s\xe8\a\xac\xf1\x15\x8b\xf0\x15\xa8}\aT\x04\x117N\xa4.",
			"\xc2\xc3҅\xe5s\xe8\a\xac\xf1\x15\x8b\xf0\x15\xa8}\aT\x04\x117N\xa4.",
		},
		{
			"Ud\x1be\xf6r\xfd+&yc\x86",
			"\x87\xf9\xccQe\x95\x0f\x03h緝\xc2IX\x10\x98\xf5D\xe5?)1m",
			"\x87\xf9\xccze\x95\x0f\x03h緝\xc2IXҘ\xf5D\xe5?\xc41m",
		},
		{
			"\xe6\a_\a\xbc\xf5\xd1KVx\rB",
			"\x94lA\xb5\xf5\xe4xpI\n\xfe=\xa3C\xb7?\xfeR\x0e\xd0-\x12\x13i",
			"\x94lA\xb5\xf5WxpI\n\xfe=\xa3C\xb7?\xfe\xa8\x0e\xd0-\x12\x13i",
		},
		{
			"N\xfc\n\xb6\xc3\x17\xba\xc0Ľݔ",
			"\x12rЉ\x81Z\x92\xa4\xad\xba\x85R.\xc6\xe8\xf5!r-\x84Cp\xeb\xa6",
			"\x12rЉ\x81\xad\x92\xa4\xad\xba\x85R.\xc6\xe8\xf5!r-\x84\xd6p\xeb\xa6",
		},
		{
			"\x9e\xe7\xfa.\xc2\xfbr\xc3\xe6\x8cv\t",
			"\x95\xa5\xa8\xe2t\x1f$\xd7\xf1\x80\tl\xbb\xa9Ay\xb8,':yM)j",
			"\xa1\xa5\xa8\xe2t\x1f$\xd7\xf1\x80\tl\xbb\xa9Ay\xb8,':\xe7M)j",
		},
		{
			"\x8f\xff\xac\xa5\x82$`\x81\xa7\xd4\xe6l",
			"\xf0`\x867\x1d\xdc\xc8j\x00L\x9b\xd5D\x1e߈\xab\xa2s#\xdb\xf7\xa3\xac",
			"\xf0`\x867n\xdc\xc8j\x00L\x9b\xd5D\x1e߈\xab\xe9s#\xdb\xf7\xa3\xc4",
		},
		{
			"\xb8Z\x8cgo\x85\xb9\b\xc39\tw",
			"P\xdfp\xe9H\xfc>\x91쎳\xec\x19\vYn\x03\xca\x14Q \x9a\x95\xda",
			"f\xdfp\xe9H\xfc>\x91쎳\xec\x19\v\xfdn\x03\xca\x14Q \x9a\x95\xda",
		},
		{
			"\xbeA\x1d\x99\xac\xcd`\xa1\xe2\xcbI\b",
			"\x96C7[R ]*\xd7\xc3+\xb2l\r\xa9\x88;vL\x98%u՝",
			"_C7[R \xa9*\xd7\xc3+\xb2l\r\xa9\x88;3L\x98%u՝",
		},
		{
			"\"|\xc1z\xa7tEP\x80\x93y5",
			"\x93\xc6\x05SF\x80\xbb\x17?I\xf2P\xfaI.\x7f~2\xa3\xd8A\x92Am",
			"\x93\xc6\x05SF^\xbb\x17?I\xf2P\xfaI.\x12~2\xa3\xd8A\x92Am",
		},
		{
			"N?ѱ\xa7\xd9ɩ\xcc,\x8f\x9c",
			"x@\x98\xb9\xb6B\x8f\x85\xb6\xc9c\xddҥTp\xef\xb8|\x96\x8d\x00r\xff",
			"\xe5@\x98\xb9\xb6B\x8f\x85\xb6\xc9c\xddҥTp\xef\xb8|\x96\x8d\x00r\xff",
		},
	} {
		f.Add([]byte(found[0]), []byte(found[1]), []byte(found[2]))
	}
	f.Fuzz(func(t *testing.T, settings, one, other []byte) {
		if _, difference := differs(guard, honest, settings, one, other); difference != "" {
			t.Error(difference)
		}
	})
}

// pairs draws so many pairs, most of which differ in little, and returns how many had one key, and the first difference.
func pairs(guard *cacheguard.Guard, ask asks, tries int) (same int, difference string) {
	random := rand.New(rand.NewPCG(1, 2))
	fill := func(b []byte) []byte {
		for i := range b {
			b[i] = byte(random.UintN(256))
		}
		return b
	}
	for range tries {
		one := fill(make([]byte, 24))
		other := slices.Clone(one)
		for range 1 + random.IntN(3) {
			other[random.IntN(len(other))] = byte(random.UintN(256))
		}
		is, found := differs(guard, ask, fill(make([]byte, 12)), one, other)
		if is {
			same++
		}
		if found != "" {
			return same, found
		}
	}
	return same, ""
}

func TestEqualKeysAreEqualRequests(t *testing.T) {
	t.Parallel()
	tries := expect.Samples(1_000, 10_000)
	same, difference := pairs(unasked(t), honest, tries)
	if difference != "" {
		t.Error(difference)
	}
	if same < tries/20 {
		t.Errorf("only %d pairs of %d had one key", same, tries)
	}
}

// Each of these is a mistake that caches have made.
func TestPlantedMistakesAreFound(t *testing.T) {
	t.Parallel()
	guard := unasked(t)
	for name, plant := range map[string]func(sent, handed *http.Request){
		"the host of the URL":              func(sent, handed *http.Request) { handed.URL.Host = sent.URL.Host },
		"the form as it was read in front": func(sent, handed *http.Request) { handed.Form, handed.PostForm = sent.Form, sent.PostForm },
		"the query as it was sent":         func(sent, handed *http.Request) { handed.URL.RawQuery = sent.URL.RawQuery },
		"the request line as it was sent":  func(sent, handed *http.Request) { handed.RequestURI = sent.RequestURI },
		"the URL as it was touched":        func(sent, handed *http.Request) { *handed.URL = *sent.URL },
		"the fields as they were sent":     func(sent, handed *http.Request) { handed.Header = sent.Header },
		"Accept as it was sent":            func(sent, handed *http.Request) { handed.Header["Accept"] = sent.Header["Accept"] },
		"Forwarded as it was sent":         func(sent, handed *http.Request) { handed.Header["Forwarded"] = sent.Header["Forwarded"] },
		"whether the connection ends":      func(sent, handed *http.Request) { handed.Close = sent.Close },
	} {
		faulty := func(guard *cacheguard.Guard, cfg Config, vary []string, r *http.Request) (string, *http.Request, bool) {
			key, handed, ok := honest(guard, cfg, vary, r)
			if ok {
				plant(r, handed)
			}
			return key, handed, ok
		}
		if _, difference := pairs(guard, faulty, 20_000); difference == "" {
			t.Errorf("%s: not found", name)
		}
	}
	// A key that leaves something out.
	for name, cut := range map[string]string{"what no Vary names": " {:", "the URL that a router made": "{:url "} {
		faulty := func(guard *cacheguard.Guard, cfg Config, vary []string, r *http.Request) (string, *http.Request, bool) {
			key, handed, ok := honest(guard, cfg, vary, r)
			key, _, _ = strings.Cut(key, cut)
			return key, handed, ok
		}
		if _, difference := pairs(guard, faulty, 20_000); difference == "" {
			t.Errorf("%s: not found", name)
		}
	}
}
