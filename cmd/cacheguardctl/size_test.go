package main

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestSizeMeasuresEntriesAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := ctl(t, at(s), "size", "--samples=2", "--payload=100", "--tags=0,1")
	r.want(t, done, "no cache", "a cache with a version", "MORE THAN A SET", "INSTANCES", "1000", "21000", "SERIES OF METRICS", "1101000")
	expect.Equal(t, "lines of entries", strings.Count(r.out, " 100 "), 7) // and the fleet of 100
	left, err := s.Client(t).Keys(t.Context(), "*").Result()
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "keys that were left", strings.Join(left, " "), "")
	ctl(t, at(s), "size", "--samples=1", "--payload=100", "--tags=4", "--json").want(t, done, `"entries":[{"payload":100,"tags":4,"of":"no cache"`)
}

func TestSizeWorksOnACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	ctl(t, "redis://"+strings.Join(c.Addrs(), ","), "size", "--samples=3", "--payload=100", "--tags=1").want(t, done, "a cache with a version")
	for i := range c.Addrs() {
		left, err := c.Node(i).Client(t).Keys(t.Context(), "*").Result()
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "keys that were left", strings.Join(left, " "), "")
	}
}

func TestCheckNamesTheServerForAUserWhoMayNotAskForInfo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	expect.ErrorIs(t, s.Client(t).Do(t.Context(), "ACL", "SETUSER", "poor", "on", ">secret", "~*", "&*", "+@all", "-info").Err(), nil)
	ctl(t, "redis://poor:secret@"+s.Addr(), "check").want(t, done, ", standalone", "warning  maxmemory-policy")
}
