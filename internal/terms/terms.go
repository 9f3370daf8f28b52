// Package terms has what Configs have in common: the ranges and defaults of their fields, and of how a lease is held.
package terms

import (
	"errors"
	"reflect"
	"time"
)

const (
	defaultPrefix = "lock"
	defaultTTL    = 10 * time.Second
	minTTL        = 100 * time.Millisecond
)

// Terms are the fields of a lock's Config by the same names, and documented there.
type Terms struct {
	Prefix       string
	TTL          time.Duration
	Watchdog     int
	MaxHold      time.Duration
	RedisTimeout time.Duration
}

// Check returns one error that names every field that is out of range.
func (t Terms) Check() error {
	var p Problems
	p.Prefix(t.Prefix)
	if t.TTL != 0 && (t.TTL < minTTL || t.TTL > Longest) {
		p.Add("TTL", "%v is not between %v and 10 years", t.TTL, minTTL)
	}
	if t.Watchdog != 0 && t.Watchdog != Off {
		p.Add("Watchdog", "%d is neither 0 nor -1", t.Watchdog)
	}
	if ttl := t.WithDefaults().TTL; t.MaxHold != 0 && t.MaxHold != Off && (t.MaxHold < ttl || t.MaxHold > Longest) {
		p.Add("MaxHold", "%v is not between TTL (%v) and 10 years", t.MaxHold, ttl)
	}
	p.RedisTimeout(t.RedisTimeout)
	return p.Err()
}

// WithDefaults fills in what is 0. A MaxHold that is off becomes 0.
func (t Terms) WithDefaults() Terms {
	SetDefault(&t.Prefix, defaultPrefix)
	SetDefault(&t.TTL, defaultTTL)
	SetDefault(&t.RedisTimeout, DefaultRedisTimeout)
	t.MaxHold = max(t.MaxHold, 0)
	return t
}

// CheckClient refuses a client that is nil.
func CheckClient(rdb any) error {
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("rdb is nil")
	}
	return nil
}
