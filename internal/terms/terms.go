// Package terms has what the Configs of all locks have in common: the ranges and defaults of how a lease is held.
package terms

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

const (
	defaultPrefix       = "lock"
	defaultTTL          = 10 * time.Second
	minTTL              = 100 * time.Millisecond
	defaultRedisTimeout = 500 * time.Millisecond
)

// Off is the value that switches a feature off.
const Off = -1

// longest is the longest lease there is.
const longest = 10 * 365 * 24 * time.Hour

// Terms are the fields of a Config by the same names, and documented there.
type Terms struct {
	Prefix       string
	TTL          time.Duration
	Watchdog     int
	MaxHold      time.Duration
	RedisTimeout time.Duration
}

// Check returns one error that names every field that is out of range.
func (t Terms) Check() error {
	var problems []error
	bad := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("Config.%s: "+format, append([]any{field}, args...)...))
	}
	if strings.ContainsAny(t.Prefix, "{}") {
		bad("Prefix", "%q contains a brace", t.Prefix)
	}
	if t.TTL != 0 && (t.TTL < minTTL || t.TTL > longest) {
		bad("TTL", "%v is not between %v and 10 years", t.TTL, minTTL)
	}
	if t.Watchdog != 0 && t.Watchdog != Off {
		bad("Watchdog", "%d is neither 0 nor -1", t.Watchdog)
	}
	if ttl := t.WithDefaults().TTL; t.MaxHold != 0 && t.MaxHold != Off && (t.MaxHold < ttl || t.MaxHold > longest) {
		bad("MaxHold", "%v is not between TTL (%v) and 10 years", t.MaxHold, ttl)
	}
	if t.RedisTimeout != 0 && (t.RedisTimeout < time.Millisecond || t.RedisTimeout > longest) {
		bad("RedisTimeout", "%v is not between a millisecond and 10 years", t.RedisTimeout)
	}
	return errors.Join(problems...)
}

// WithDefaults fills in what is 0. A MaxHold that is off becomes 0.
func (t Terms) WithDefaults() Terms {
	setDefault(&t.Prefix, defaultPrefix)
	setDefault(&t.TTL, defaultTTL)
	setDefault(&t.RedisTimeout, defaultRedisTimeout)
	t.MaxHold = max(t.MaxHold, 0)
	return t
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// CheckClient refuses a client that is nil.
func CheckClient(rdb any) error {
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("rdb is nil")
	}
	return nil
}
