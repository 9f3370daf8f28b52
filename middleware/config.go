package middleware

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	configs "github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// Config configures a Cache. In every field 0 means the default, and -1 switches the feature off where the field says so. The zero Config
// stores what the handler's Cache-Control allows, and nothing else.
type Config struct {
	// Name is the name of the Cache in Cache-Status (RFC 9211), a token. Default: cacheguard.
	Name string

	// Space names the set of pages that the Cache has, a token. Caches on one Guard share pages, tags and prefixes if their Spaces are
	// the same, and nothing if they differ. Default: the empty Space.
	Space string

	// Bypass says which requests go to the handler each time: long polls, previews, uploads. Nothing is stored for them. It is called for
	// GET and HEAD, with each request, and must be quick. Default: none.
	Bypass func(r *http.Request) bool

	// Key is what tells pages apart beyond RFC 9111.
	Key Key

	// Limits bound what clients can make the cache store.
	Limits Limits

	// DefaultTTL is the lifetime of a response that states none: no max-age, s-maxage or Expires. It counts only for status codes that
	// allow it, and for requests without Authorization and Cookie, as the response may be meant for one user. Default: 0, such responses
	// are not stored.
	DefaultTTL time.Duration

	// StatusTTL is DefaultTTL by status, also for codes that DefaultTTL does not apply to. -1: not stored. Default: none.
	StatusTTL map[int]time.Duration

	// StoreErrors says which responses with a status of 400 or more may be stored, and for how long at most. One that states no lifetime
	// lives that long, under the conditions of DefaultTTL, so that one call of a failing handler answers all who wait. It does not replace a
	// page that may still be served. An empty map stores none. Default: nil, what the responses say counts; but as handlers often state the
	// lifetime of their page before they fail to make it, 10 seconds are the most, except for 404, 405, 410, 414, 501 and StatusTTL.
	StoreErrors map[int]time.Duration

	// Heuristic makes the lifetime of a response that states none a share, from 0 to 1, of the time since its Last-Modified (RFC 9111
	// section 4.2.2 suggests 0.1), at most a day. It counts under the conditions of DefaultTTL, which has precedence. Default: 0.1, 10
	// seconds at most, and only for responses that say public and for 405, 414 and 501, which depend on the method and the URL alone. -1: off.
	Heuristic float64

	// KeepFor is how long a stale response with an ETag or Last-Modified is kept, so that the handler can confirm it instead of
	// making it again. Default: 1 minute. -1: not at all.
	KeepFor time.Duration

	// StaleIfError is how long a stale page may stand in when the handler fails (it answers 500, 502, 503 or 504, panics, or takes longer
	// than LoadTimeout) and the page has no stale-if-error. The request whose handler panicked gets the panic, so that those in front see it. A page with must-revalidate, proxy-revalidate, s-maxage or no-cache stands in only
	// if it says so itself. Default: 10 seconds, for pages that were fresh when they were made. -1: off.
	StaleIfError time.Duration

	// StaleWhile is how long a page that was fresh when it was made may be served stale while one request has it rebuilt, if it has no
	// stale-while-revalidate. A page with must-revalidate, proxy-revalidate, s-maxage or no-cache is served stale only if it says so itself.
	// It also bounds what Soft invalidations leave. Default: 0, off.
	StaleWhile time.Duration

	// Override corrects the header of a response before it is judged: a Vary: Cookie or a no-cache that a framework sets for no reason. The
	// client gets the corrected header. Then Key has to say what tells pages apart. It must be quick, must not panic and must not change the
	// request. Default: none.
	Override func(r *http.Request, header http.Header)

	// PassFor is how long the Cache remembers that a response could not be stored. Requests for it go straight to the handler then,
	// instead of waiting for one another, and may take longer than LoadTimeout. The first response whose header shows that it could be stored ends that.
	// Errors are not remembered. Default: 10 seconds. -1: not at all.
	PassFor time.Duration

	// MaxBody is the size of the largest body that is stored, in bytes. A larger one reaches its client as it is written. The Guard's
	// MaxValueBytes limits it too. Default: 1 MiB.
	MaxBody int

	// SliceBytes stores pages that are larger than MaxBody in slices of this size, at most MaxBody. A slice is loaded when a request needs
	// it, and an answer holds one slice in memory. This works for a response with status 200 that states its lifetime and its length, has
	// a strong ETag (or a Last-Modified that counts as one), and whose handler answers ranges. Default: 0, off.
	SliceBytes int

	// LimitLoads makes the handler's calls for pages count towards the Guard's MaxLoads. A call whose response turns out not to be
	// storable stops counting. Default: they are not limited, just as without a Cache.
	LimitLoads bool

	// FinishLoads lets the handler finish a response that may be stored when all clients that waited for it have left, so that it is there
	// when they come again. LoadTimeout ends it all the same. Default: its context ends when the last client leaves.
	FinishLoads bool

	// StoreSetCookie stores responses with Set-Cookie if RFC 9111 permits that, and sends the cookie to everybody.
	StoreSetCookie bool

	// IgnoreRequest ignores the Cache-Control of requests, so that clients cannot force a page to be
	// rebuilt.
	IgnoreRequest bool

	// SortQuery treats queries that differ only in the order of their parameters as one page. Parameters of the same name keep their order.
	SortQuery bool

	// SortAccept treats Accept, Accept-Charset, Accept-Encoding and Accept-Language that differ only in the order of their members as one,
	// as RFC 9110 does. Many handlers do not: of "de, en" they take the first. Clients then get pages that others chose. Default: the
	// order counts.
	SortAccept bool

	// KeyFields are more request fields that tell pages apart although no Vary names them. Fields that give frameworks another host,
	// scheme or path, such as Forwarded and X-Forwarded-Host, do so by default (docs/http.md lists them), and a request whose fields
	// override its method passes. NotKeyFields are fields of that default that the handler does not read, or that a proxy in front always
	// sets.
	KeyFields, NotKeyFields []string

	// Target is a response field that counts instead of CDN-Cache-Control and Cache-Control for this cache (RFC 9213), such as
	// Shop-Cache-Control. Default: none; CDN-Cache-Control has precedence over Cache-Control.
	Target string

	// HideFields are response fields that clients do not get, whether the handler or the cache set them: Cache-Tag, Surrogate-Key, Cache-Groups, Cache-Status.
	// Default: none.
	HideFields []string

	// InvalidatingMethods are the methods that invalidate their page when they succeed. Default: nil, all but the safe ones of IANA's
	// registry, also unknown ones, as RFC 9111 section 4.4 has it. An empty list: none.
	InvalidatingMethods []string

	// Prefixes are the prefixes of paths that InvalidatePrefix accepts. Each prefix that a page falls under is one more name that
	// each hit asks Redis about, in the same request. Default: none.
	Prefixes []string

	// KeyInStatus adds the key of the page to Cache-Status.
	KeyInStatus bool

	// OnResponse is called at the end of every request, for metrics. It must be quick, must not block and must not panic.
	OnResponse func(r *http.Request, res Response)

	// Logger receives the stacks of handlers that panic, one in ten seconds, which says how many more there were. Default: none.
	Logger *slog.Logger
}

const (
	defaultName    = "cacheguard"
	defaultKeepFor = time.Minute
	defaultPassFor = 10 * time.Second
	defaultMaxBody = 1 << 20
)

// check returns one error that names every field that is out of range.
func (c *Config) check() error {
	var p configs.Problems
	bad := p.Add
	for field, d := range map[string]time.Duration{
		"DefaultTTL": c.DefaultTTL, "KeepFor": c.KeepFor, "StaleIfError": c.StaleIfError, "StaleWhile": c.StaleWhile, "PassFor": c.PassFor,
	} {
		p.Duration(field, d)
		if d > rules.Longest {
			bad(field, "%v is longer than %v", d, rules.Longest)
		}
	}
	for field, name := range map[string]string{"Name": c.Name, "Space": c.Space, "Target": c.Target} {
		if !token(name) {
			bad(field, "%q is no token", name)
		}
	}
	for field, names := range map[string][]string{"KeyFields": c.KeyFields, "NotKeyFields": c.NotKeyFields, "HideFields": c.HideFields} {
		for _, name := range names {
			if name == "" || !token(name) {
				bad(field, "%q is no name of a field", name)
			}
		}
	}
	c.Key.check(bad)
	for field, n := range map[string]int{
		"MaxBody": c.MaxBody, "Limits.URL": c.Limits.URL, "Limits.Variants": c.Limits.Variants, "Limits.Pages": c.Limits.Pages,
	} {
		if n < 0 {
			bad(field, "%d is negative", n)
		}
	}
	if c.Limits.Admit < 0 {
		bad("Limits.Admit", "%v is negative", c.Limits.Admit)
	}
	c.checkStatuses(bad)
	if c.Heuristic != configs.Off && !(c.Heuristic >= 0 && c.Heuristic <= 1) {
		bad("Heuristic", "%v is not between 0 and 1", c.Heuristic)
	}
	if limit := cmp.Or(c.MaxBody, defaultMaxBody); c.SliceBytes < 0 || c.SliceBytes > limit {
		bad("SliceBytes", "%d is not between 0 and MaxBody, %d", c.SliceBytes, limit)
	}
	for _, name := range rules.Names(c.NotKeyFields) {
		if slices.Contains(rules.Names(c.KeyFields), name) {
			bad("NotKeyFields", "%s is one of KeyFields", name)
		}
	}
	for _, method := range c.InvalidatingMethods {
		if method == "" || !token(method) || rules.IsSafe(method) {
			bad("InvalidatingMethods", "%q is no method that changes anything", method)
		}
	}
	for _, prefix := range c.Prefixes {
		if !strings.HasPrefix(prefix, "/") {
			bad("Prefixes", "%q does not begin with a slash", prefix)
		}
	}
	return p.Err()
}

func (c *Config) checkStatuses(bad func(field, format string, args ...any)) {
	for field, ttls := range map[string]map[int]time.Duration{"StatusTTL": c.StatusTTL, "StoreErrors": c.StoreErrors} {
		for status, ttl := range ttls {
			switch {
			case status < 200 || status > 999 || field == "StoreErrors" && status < 400:
				bad(field, "%d is no status that it can have", status)
			case ttl > rules.Longest || ttl < 0 && (ttl != configs.Off || field == "StoreErrors"):
				bad(field, "%v is no lifetime of a response with status %d", ttl, status)
			case field == "StatusTTL" && status >= 400 && ttl > 0 && c.StoreErrors != nil:
				bad(field, "%d is an error, and StoreErrors says which are stored", status)
			}
		}
	}
}

// token reports whether s is a token of Structured Fields, or empty.
func token(s string) bool {
	return s == "" || record.IsToken(s) && ('a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z')
}

func (c Config) withDefaults() Config {
	configs.SetDefault(&c.Name, defaultName)
	configs.SetDefault(&c.KeepFor, defaultKeepFor)
	configs.SetDefault(&c.PassFor, defaultPassFor)
	configs.SetDefault(&c.MaxBody, defaultMaxBody)
	configs.SetDefault(&c.Limits.URL, defaultMaxURL)
	c.DefaultTTL, c.KeepFor = max(c.DefaultTTL, 0), max(c.KeepFor, 0)
	c.PassFor, c.StaleWhile = max(c.PassFor, 0), max(c.StaleWhile, 0)
	return c
}

func (c *Config) identity() canonical.Settings {
	return canonical.Settings{
		Space: c.Space, SortQuery: c.SortQuery, SortAccept: c.SortAccept, KeyFields: c.KeyFields, NotKeyFields: c.NotKeyFields,
		Guesses:     c.DefaultTTL > 0 || c.Heuristic > 0 || len(c.StatusTTL)+len(c.StoreErrors) > 0,
		IgnoreQuery: c.Key.IgnoreQuery, OnlyQuery: c.Key.OnlyQuery, Cookies: c.Key.Cookies, Claim: c.Key.Claim, Host: c.Key.Host, MaxURL: c.Limits.URL,
	}
}

func (c *Config) rules() *rules.Settings {
	return &rules.Settings{
		DefaultTTL: c.DefaultTTL, Heuristic: c.Heuristic, KeepFor: c.KeepFor, StaleIfError: c.StaleIfError,
		StaleWhile: c.StaleWhile, Override: c.Override, StatusTTL: c.StatusTTL, StoreErrors: c.StoreErrors, StoreSetCookie: c.StoreSetCookie,
		Targets: rules.Names([]string{c.Target, "CDN-Cache-Control"}),
	}
}
