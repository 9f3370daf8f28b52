package main

import (
	"fmt"
	"time"
)

// mode is what stands between the callers and the database.
type mode string

const (
	modeHand   mode = "hand"   // GET and SET
	modeFlight mode = "flight" // and singleflight in each instance
	modeGuard  mode = "guard"  // cacheguard
)

var names = map[mode]string{modeHand: "by hand", modeFlight: "singleflight", modeGuard: "cacheguard"}

// settings are what the page can change.
type settings struct {
	Mode    mode `json:"mode"`
	Callers int  `json:"callers"`
	TTL     int  `json:"ttl"`    // seconds
	Stale   bool `json:"stale"`  // of cacheguard: serve the old value while a new one is loaded
	Local   bool `json:"local"`  // of cacheguard: keep it in the memory of each instance
	Slow    bool `json:"slow"`   // the database
	Intend  bool `json:"intend"` // of cacheguard: for writes that commit later
	Feed    bool `json:"feed"`   // invalidates what somebody writes past the cache
}

func (s settings) ttl() time.Duration { return time.Duration(s.TTL) * time.Second }

// check names the field that is wrong.
func (s settings) check() error {
	switch {
	case names[s.Mode] == "":
		return fmt.Errorf("mode: %q is none of hand, flight, guard", s.Mode)
	case s.Callers < 0 || s.Callers > 500:
		return fmt.Errorf("callers: %d is not between 0 and 500", s.Callers)
	case s.TTL < 1 || s.TTL > 3600:
		return fmt.Errorf("ttl: %d is not between 1 and 3600 seconds", s.TTL)
	}
	return nil
}

// lasting is the settings without those that can change while instances run.
func (s settings) lasting() settings {
	s.Callers, s.Slow, s.Feed, s.Intend = 0, false, false, false
	return s
}
