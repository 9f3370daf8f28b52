package middleware

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	configs "github.com/cacheguard/go/internal/terms"
	"github.com/cacheguard/go/middleware/internal/identity"
	"github.com/cacheguard/go/middleware/internal/rules"
)

// Config says how a Cache behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so. The zero Config keeps what the handler's Cache-Control allows, and nothing else.
type Config struct {
	// Name is what the Cache calls itself in Cache-Status (RFC 9211), a token. Default: cacheguard.
	Name string

	// Space names the set of pages that the Cache has, a token. Caches on one Guard share pages, tags and prefixes when their
	// Spaces are the same, and nothing when they differ. Default: none, which is a Space too.
	Space string

	// DefaultTTL is how long a response is fresh that says nothing about it: no max-age, s-maxage or Expires. Only for
	// status codes that allow it, and only for requests without Authorization and Cookie, as what says nothing may be meant
	// for one user. Default: 0, such responses are not stored.
	DefaultTTL time.Duration

	// Heuristic is the share of the time since Last-Modified for which a response is fresh that says nothing about it (RFC
	// 9111 section 4.2.2 suggests 0.1), at most a day; under the conditions of DefaultTTL, which goes first. Default: 0, off.
	Heuristic float64

	// KeepFor is how long after its freshness a response with an ETag or Last-Modified is kept, to be validated with the
	// handler instead of being made anew. Default: 1 minute. -1: not at all.
	KeepFor time.Duration

	// StaleIfError is how long after its freshness a page may stand in when the handler fails (it answers 500, 502, 503 or 504,
	// or takes longer than LoadTimeout) and the page says nothing of it. A page with must-revalidate, proxy-revalidate, s-maxage
	// or no-cache stands in only if it says so itself. Default: 0, off.
	StaleIfError time.Duration

	// PassFor is how long it is remembered that a response could not be stored. Meanwhile requests for it go to the handler
	// at once, instead of waiting for one another. An error is not remembered. Default: 10 seconds. -1: not at all.
	PassFor time.Duration

	// MaxBody is the size of the largest body stored. A larger one reaches its client as it is written. The Guard's
	// MaxValueBytes counts too. Default: 1 MiB.
	MaxBody int

	// SliceBytes has pages that are larger than MaxBody stored in slices of this size, at most MaxBody, each loaded when a request needs
	// it. Such a page is a 200 that says itself how long it is fresh, how long it is, and has a strong ETag (or a Last-Modified
	// that counts as one); its handler is asked for ranges. An answer holds one slice in memory. Default: 0, off.
	SliceBytes int

	// LimitLoads has the handler's calls for pages count for the Guard's MaxLoads. One that goes on although its response turned
	// out not to be storable does not count any more. Default: they are not limited, as they are not without a Cache.
	LimitLoads bool

	// StoreSetCookie stores responses with Set-Cookie when RFC 9111 permits that, and sends the cookie to everybody.
	StoreSetCookie bool

	// IgnoreRequest ignores the Cache-Control of requests: clients cannot have a page rebuilt by asking.
	IgnoreRequest bool

	// SortQuery makes queries that differ in the order of their parameters one page. Parameters of the same name keep
	// their order.
	SortQuery bool

	// KeyFields are further request fields by which pages are told apart although no Vary names them, as the fields are by which
	// frameworks are told another host, scheme, path or method. NotKeyFields are those of these that the handler does not look
	// at, or that a proxy in front always sets.
	KeyFields, NotKeyFields []string

	// Target is a response field that counts instead of CDN-Cache-Control and Cache-Control for this cache (RFC 9213).
	// Default: none; CDN-Cache-Control counts before Cache-Control.
	Target string

	// Prefixes are the prefixes of paths that InvalidatePrefix may be called with. Each that a page falls under costs a
	// read with each hit, which hits share. Default: none.
	Prefixes []string

	// KeyInStatus adds the key of the page to Cache-Status.
	KeyInStatus bool

	// OnResponse is called at the end of every request, for metrics. It must be quick, must not block and must not panic.
	OnResponse func(r *http.Request, res Response)

	// Logger gets the stacks of handlers that panic. Default: none.
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
	duration := func(field string, d time.Duration) {
		p.Duration(field, d)
		if d > rules.Longest {
			bad(field, "%v is longer than %v", d, rules.Longest)
		}
	}
	duration("DefaultTTL", c.DefaultTTL)
	duration("KeepFor", c.KeepFor)
	duration("StaleIfError", c.StaleIfError)
	duration("PassFor", c.PassFor)
	if !token(c.Name) {
		bad("Name", "%q is no token", c.Name)
	}
	if !token(c.Space) {
		bad("Space", "%q is no token", c.Space)
	}
	if !token(c.Target) {
		bad("Target", "%q is no name of a field", c.Target)
	}
	for _, name := range c.KeyFields {
		if name == "" || !token(name) {
			bad("KeyFields", "%q is no name of a field", name)
		}
	}
	for _, name := range c.NotKeyFields {
		if name == "" || !token(name) {
			bad("NotKeyFields", "%q is no name of a field", name)
		}
	}
	if c.Heuristic != configs.Off && !(c.Heuristic >= 0 && c.Heuristic <= 1) {
		bad("Heuristic", "%v is not between 0 and 1", c.Heuristic)
	}
	if c.MaxBody < 0 {
		bad("MaxBody", "%d is negative", c.MaxBody)
	}
	if limit := cmp.Or(c.MaxBody, defaultMaxBody); c.SliceBytes < 0 || c.SliceBytes > limit {
		bad("SliceBytes", "%d is not between 0 and MaxBody, %d", c.SliceBytes, limit)
	}
	for _, prefix := range c.Prefixes {
		if !strings.HasPrefix(prefix, "/") {
			bad("Prefixes", "%q does not begin with a slash", prefix)
		}
	}
	return p.Err()
}

// token reports whether s can name things in a Structured Field, or is not set.
func token(s string) bool {
	for i := range len(s) {
		if !rules.IsTokenChar(s[i]) {
			return false
		}
	}
	return s == "" || 'a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z'
}

func (c Config) withDefaults() Config {
	configs.SetDefault(&c.Name, defaultName)
	configs.SetDefault(&c.KeepFor, defaultKeepFor)
	configs.SetDefault(&c.PassFor, defaultPassFor)
	configs.SetDefault(&c.MaxBody, defaultMaxBody)
	c.DefaultTTL, c.KeepFor, c.PassFor = max(c.DefaultTTL, 0), max(c.KeepFor, 0), max(c.PassFor, 0)
	c.Heuristic, c.StaleIfError = max(c.Heuristic, 0), max(c.StaleIfError, 0)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *Config) identity() identity.Settings {
	return identity.Settings{
		Space: c.Space, SortQuery: c.SortQuery, KeyFields: c.KeyFields, NotKeyFields: c.NotKeyFields,
		Guesses: c.DefaultTTL > 0 || c.Heuristic > 0,
	}
}

func (c *Config) rules() *rules.Settings {
	targets := []string{"CDN-Cache-Control"}
	if c.Target != "" {
		targets = []string{c.Target, "CDN-Cache-Control"}
	}
	return &rules.Settings{
		DefaultTTL: c.DefaultTTL, Heuristic: c.Heuristic, KeepFor: c.KeepFor, StaleIfError: c.StaleIfError,
		StoreSetCookie: c.StoreSetCookie, Targets: targets,
	}
}
