package middleware

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	configs "github.com/cacheguard/go/internal/terms"
)

// Config says how a Cache behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so. The zero Config keeps what the handler's Cache-Control allows, and nothing else.
type Config struct {
	// Name is what the Cache calls itself in Cache-Status (RFC 9211), a token. Default: cacheguard.
	Name string

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

	// PassFor is how long it is remembered that a response could not be stored. Meanwhile requests for it go to the handler
	// at once, instead of waiting for one another. Default: 10 seconds. -1: not at all.
	PassFor time.Duration

	// MaxBody is the size of the largest body stored. A larger one reaches its client as it is written. The Guard's
	// MaxValueBytes counts too. Default: 1 MiB.
	MaxBody int

	// StoreSetCookie stores responses with Set-Cookie when RFC 9111 permits that, and sends the cookie to everybody.
	StoreSetCookie bool

	// IgnoreRequest ignores the Cache-Control of requests: clients cannot have a page rebuilt by asking.
	IgnoreRequest bool

	// SortQuery makes queries that differ in the order of their parameters one page. Parameters of the same name keep
	// their order.
	SortQuery bool

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

	targets []string
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
		if d > longest {
			bad(field, "%v is longer than %v", d, longest)
		}
	}
	duration("DefaultTTL", c.DefaultTTL)
	duration("KeepFor", c.KeepFor)
	duration("PassFor", c.PassFor)
	if !token(c.Name) {
		bad("Name", "%q is no token", c.Name)
	}
	if !token(c.Target) {
		bad("Target", "%q is no name of a field", c.Target)
	}
	if c.Heuristic != configs.Off && !(c.Heuristic >= 0 && c.Heuristic <= 1) {
		bad("Heuristic", "%v is not between 0 and 1", c.Heuristic)
	}
	if c.MaxBody < 0 {
		bad("MaxBody", "%d is negative", c.MaxBody)
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
		if !isToken(s[i]) {
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
	c.Heuristic = max(c.Heuristic, 0)
	c.targets = []string{"CDN-Cache-Control"}
	if c.Target != "" {
		c.targets = []string{c.Target, "CDN-Cache-Control"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
