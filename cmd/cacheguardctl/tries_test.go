package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// checkOf runs check, and returns its findings.
func checkOf(t *testing.T, url string, args ...string) (said checked, r ran) {
	t.Helper()
	r = ctl(t, url, append([]string{"--json", "check"}, args...)...)
	r.want(t, failed)
	expect.ErrorIs(t, json.Unmarshal([]byte(r.out), &said))
	return said, r
}

func TestCheckSaysThatRedisIsSlowFirstAndOnce(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	p.Delay(tooFar + 100*time.Millisecond) // which is what nothing is tried with
	said, r := checkOf(t, "redis://"+p.Addr())
	first := said.Findings[0]
	expect.Equal(t, "the first", first.Check+" "+first.Result, "latency failed")
	if !strings.HasPrefix(first.Detail, "Redis is slow: p50 ") {
		t.Error(first.Detail)
	}
	for _, f := range said.Findings[1:] {
		if f.Result == wrong {
			t.Errorf("one cause has another finding: %+v", f)
		}
		if f.Check == "guard" || f.Check == "mutex" || f.Check == "rwlock" || f.Check == "semaphore" {
			expect.Equal(t, f.Check, strings.HasPrefix(f.Detail, "not checked, as Redis is slow: a round trip takes "), true)
		}
	}
	expect.Equal(t, "says what it waits for", strings.Contains(r.errors, "waiting for the nodes of Redis"), true)
}

func TestCheckSaysWhichNodeIsSilent(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	c.Node(1).Pause()
	t.Cleanup(c.Node(1).Resume)
	said, _ := checkOf(t, "redis://"+strings.Join(c.Addrs(), ","), "--no-locks")
	expect.Equal(t, "the first", said.Findings[0].Check+" "+said.Findings[0].Node, "redis "+c.Addrs()[1])
	for _, f := range said.Findings[1:] {
		expect.Equal(t, "more of the node", f.Node == c.Addrs()[1], false)
	}
}

func TestAWriteToAClusterSaysWhichNodeItWaitsFor(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	url := "redis://" + strings.Join(c.Addrs(), ",")
	args := []string{"--prefix", "shop", "invalidate"}
	for n := range 30 { // some are on each node
		args = append(args, fmt.Sprint("k", n))
	}
	c.Node(1).Pause()
	t.Cleanup(c.Node(1).Resume)
	r := ctl(t, url, args...)
	r.want(t, failed)
	for line := range strings.Lines(r.errors) { // on a busy machine other nodes may be late too, and are named with it
		if _, nodes, is := strings.Cut(line, "waiting for Redis, to invalidate: "); is && strings.Contains(nodes, c.Addrs()[1]) {
			return
		}
	}
	t.Error("nothing names the node that is silent:", r.errors)
}

func TestDurationsAreRoundedForPeople(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		123456 * time.Nanosecond: "123µs", 1234567 * time.Nanosecond: "1.23ms", 702345678 * time.Nanosecond: "702ms", 1702345678 * time.Nanosecond: "1.7s",
	} {
		expect.Equal(t, want, rounded(d).String(), want)
	}
}
