package main

import (
	"flag"
	"fmt"
	"time"
)

// settings are what the flags say.
type settings struct {
	instances int
	callers   int // of each instance
	duration  time.Duration
	ttl       time.Duration
	query     time.Duration
}

// short is what -short changes.
var short = map[string]string{"callers": "25", "duration": "2s", "ttl": "400ms"}

func (s *settings) flags(f *flag.FlagSet) {
	f.IntVar(&s.instances, "instances", 8, "`number` of instances of the service")
	f.IntVar(&s.callers, "callers", 100, "`number` of concurrent callers of each instance")
	f.DurationVar(&s.duration, "duration", 2500*time.Millisecond, "how long each of the runs takes")
	f.DurationVar(&s.ttl, "ttl", 500*time.Millisecond, "how long an entry lives in the cache")
	f.DurationVar(&s.query, "query", 80*time.Millisecond, "how long a database query takes")
}

// check refuses what would run into the limits of a laptop, or be over before the watcher could count anything.
func (s *settings) check() error {
	switch {
	case s.instances < 1 || s.instances > 64:
		return fmt.Errorf("-instances: %d is not between 1 and 64", s.instances)
	case s.callers < 1 || s.callers > 1000:
		return fmt.Errorf("-callers: %d is not between 1 and 1000", s.callers)
	case s.ttl < 100*time.Millisecond:
		return fmt.Errorf("-ttl: %v is shorter than 100ms", s.ttl)
	case s.query < 20*time.Millisecond || s.query > 10*time.Second:
		return fmt.Errorf("-query: %v is not between 20ms and 10s", s.query)
	case s.duration <= s.ttl+s.query:
		return fmt.Errorf("-duration: %v is too short to see an entry expire: it takes more than -ttl and -query together (%v)",
			s.duration, s.ttl+s.query)
	}
	return nil
}
