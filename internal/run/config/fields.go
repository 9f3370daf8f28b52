package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Off is the value that switches a feature off.
	Off = -1

	// Longest is the longest duration there is. Sums of a few do not overflow, in Redis' milliseconds either.
	Longest = 10 * 365 * 24 * time.Hour

	// DefaultRedisTimeout bounds each operation on Redis.
	DefaultRedisTimeout = 500 * time.Millisecond
)

// Problems are what is wrong with a Config.
type Problems struct {
	Of   string // the name of its type; empty: Config
	errs []error
}

// Add adds one, with a field.
func (p *Problems) Add(field, format string, args ...any) {
	of := p.Of
	SetDefault(&of, "Config")
	p.errs = append(p.errs, fmt.Errorf("%s.%s: "+format, append([]any{of, field}, args...)...))
}

// Prefix refuses one that would end the hash tag of a key, or that metrics and logs cannot have as it is.
func (p *Problems) Prefix(prefix string) {
	if strings.ContainsAny(prefix, "{}") {
		p.Add("Prefix", "%q contains a brace", prefix)
	}
	if !utf8.ValidString(prefix) {
		p.Add("Prefix", "%q is not UTF-8", prefix)
	}
}

// Duration refuses one that is negative, but for Off, or so short that its unit must be missing.
func (p *Problems) Duration(field string, d time.Duration) {
	if d < 0 && d != Off {
		p.Add(field, "%v is negative (use -1 to switch it off)", d)
	}
	if d > 0 && d < time.Millisecond {
		p.Add(field, "%v is shorter than a millisecond (is the unit missing?)", d)
	}
}

// RedisTimeout refuses one that is out of range.
func (p *Problems) RedisTimeout(d time.Duration) {
	if d != 0 && (d < time.Millisecond || d > Longest) {
		p.Add("RedisTimeout", "%v is not between a millisecond and 10 years", d)
	}
}

// Replicas refuses a number that is none.
func (p *Problems) Replicas(n int) {
	if n < Off {
		p.Add("Replicas", "%d is negative", n)
	}
}

// Life refuses a TTL of something that may live without end.
func (p *Problems) Life(ttl time.Duration) {
	if ttl != 0 && ttl != Off && (ttl < time.Millisecond || ttl > Longest) {
		p.Add("TTL", "%v is not between a millisecond and 10 years (use -1 for no limit)", ttl)
	}
}

// Err returns one error that names every field, or nil.
func (p *Problems) Err() error { return errors.Join(p.errs...) }

// SetDefault fills in a field that is not set.
func SetDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
