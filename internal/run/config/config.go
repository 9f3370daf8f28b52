// Package config has the common parts of Configs: the ranges and defaults of their fields, and the settings of a held
// lease.
package config

import "time"

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
