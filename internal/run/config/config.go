// Package config has the common parts of Configs: the ranges and defaults of their fields, and the settings of a held
// lease.
package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	defaultPrefix = "lock"
	defaultTTL    = 10 * time.Second
	minTTL        = 100 * time.Millisecond
)

// Lock has the fields that the Configs of all locks on Redis share, by the same names. They are documented there.
type Lock struct {
	Prefix, Instance string
	TTL              time.Duration
	FixedLease       bool
	MaxHold          time.Duration
	Replicas         int
	RedisTimeout     time.Duration
	Hooks            Hooks
}

// Check returns one error that names every field that is out of range.
func (l Lock) Check() error {
	var p Problems
	p.Prefix(l.Prefix)
	p.Instance(l.Instance)
	if l.TTL != 0 && (l.TTL < minTTL || l.TTL > Longest) {
		p.Add("TTL", "%v is not between %v and 10 years", l.TTL, minTTL)
	}
	if ttl := l.WithDefaults().TTL; l.MaxHold != 0 && l.MaxHold != Off && (l.MaxHold < ttl || l.MaxHold > Longest) {
		p.Add("MaxHold", "%v is not between TTL (%v) and 10 years", l.MaxHold, ttl)
	}
	p.Replicas(l.Replicas)
	p.RedisTimeout(l.RedisTimeout)
	return p.Err()
}

// WithDefaults fills in the fields that are 0. A field that is off becomes 0.
func (l Lock) WithDefaults() Lock {
	SetDefault(&l.Prefix, defaultPrefix)
	SetDefault(&l.Instance, DefaultInstance())
	SetDefault(&l.TTL, defaultTTL)
	SetDefault(&l.RedisTimeout, DefaultRedisTimeout)
	l.MaxHold, l.Replicas = max(l.MaxHold, 0), max(l.Replicas, 0)
	return l
}

// CheckClient refuses a client that is nil.
func CheckClient(rdb any) error {
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("rdb is nil")
	}
	return nil
}

// Hooks are the Hooks of all locks, and documented there.
type Hooks struct {
	Begin    func(ctx context.Context, call, name string) func(error)
	OnLock   func(name string, took time.Duration, err error)
	OnUnlock func(name string, held time.Duration, err error)
}

// Ask is called at the beginning of a call that asks for a lock, and Asking.End at its end.
func (h Hooks) Ask(ctx context.Context, call, name string) Asking {
	a := Asking{onLock: h.OnLock, name: name, began: time.Now()}
	if h.Begin != nil {
		a.end = h.Begin(ctx, call, name)
	}
	return a
}

// Asking is a call that asks for a lock.
type Asking struct {
	end    func(error) // from Begin; nil: nothing
	onLock func(name string, took time.Duration, err error)
	name   string
	began  time.Time
}

// End reports the error of the call, or nil.
func (a Asking) End(err error) {
	if a.end != nil {
		a.end(err)
	}
	if a.onLock != nil {
		a.onLock(a.name, time.Since(a.began), err)
	}
}

// Held returns what is to be called when a lease that begins now is unlocked.
func (h Hooks) Held(name string) func(error) {
	if h.OnUnlock == nil {
		return func(error) {}
	}
	began := time.Now()
	return func(err error) { h.OnUnlock(name, time.Since(began), err) }
}

// MaxInstance is how many bytes the name of an instance may have. With the time before it, Redis keeps it compact in a
// hash.
const MaxInstance = 50

// Instance refuses a name that does not fit into a lease, or that a log would not show as it is.
func (p *Problems) Instance(name string) {
	hidden := func(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsSpace(r) }
	switch {
	case len(name) > MaxInstance:
		p.Add("Instance", "its %d bytes are more than %d", len(name), MaxInstance)
	case strings.ContainsFunc(name, hidden):
		p.Add("Instance", "%q has a space, or a character that cannot be printed", name)
	}
}

// DefaultInstance is host:pid. Of a long host, only the end is there, as it tells the instances of a service apart.
func DefaultInstance() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return instanceOf(host, os.Getpid())
}

func instanceOf(host string, pid int) string {
	host = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' {
			return '_'
		}
		return r
	}, host)
	id := ":" + strconv.Itoa(pid)
	return host[max(len(host)+len(id)-MaxInstance, 0):] + id
}

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
