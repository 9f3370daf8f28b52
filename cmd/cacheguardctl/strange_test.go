package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAPrefixThatNobodyHasIsNoticed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	prefix := "te*t-" + rand.Text()
	keep(t, newGuard(t, s.Client(t), prefix), "a") // and listens
	expect.ErrorIs(t, s.Client(t).Do(t.Context(), "acl", "setuser", "poor", "on", ">secret", "~*", "&*", "+@all", "-pubsub").Err())
	const says = "note: no process has subscribed"
	for _, url := range []string{at(s), "redis://poor:secret@" + s.Addr()} {
		for _, args := range [][]string{{"inspect", "a"}, {"invalidate", "b"}, {"bypass", "0"}, {"stats"}, {"check"}} {
			r := ctl(t, url, append([]string{"--prefix", prefix}, args...)...)
			expect.Equal(t, "noted", strings.Contains(r.errors, says), false)
			r = ctl(t, url, append([]string{"--prefix", "other-" + rand.Text()}, args...)...)
			expect.Equal(t, "noted", strings.Contains(r.errors, says), true)
		}
	}
	for _, url := range []string{"redis://poor:wrong@" + s.Addr(), at(s) + "/1000"} {
		r := ctl(t, url, "--prefix", "other", "inspect", "a")
		expect.Equal(t, "noted where Redis was not asked: "+r.errors, strings.Contains(r.errors, says), false)
	}
	expect.Equal(t, "noted for locks", strings.Contains(ctl(t, at(s), "--prefix", "other", "locks", "show", "a").errors, says), false)
}

func TestReadCommandsSayWhatMayBeMistyped(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	keep(t, newGuard(t, shared.Client(t), prefix), "a")
	page := pageOf(t, `{"guards":[{"prefix":"`+prefix+`","tags":[],"keys":["a"],"caches":[{"name":"product"}]}]}`)
	ctl(t, at(shared), "--prefix", prefix, "inspect", "prodcut:1", "--page", page).want(t, done, "missing", `note: no page shows a Cache that the key "prodcut:1" could be of`)
	ctl(t, at(shared), "--prefix", prefix+"s", "inspect", "product:1", "--page", page).want(t, done, "missing", "note: no page shows a Guard with the Prefix")
	ctl(t, at(shared), "--prefix", prefix+"s", "watch", "--every", "100ms", "--count", "1", "--page", page).want(t, done, "note: no page shows a Guard with the Prefix")
	expect.Equal(t, "noted of what is there", strings.Contains(ctl(t, at(shared), "--prefix", prefix, "inspect", "a", "--page", page).out, "note"), false)
	ctl(t, at(shared), "--prefix", prefix, "inspect", "a", "--page", "http://127.0.0.1:1").want(t, done, "fresh", "note: no page could be read")
	ctl(t, at(shared), "--lock-prefix", prefix, "locks", "show", "imprt").want(t, done, "unknown", `note: Redis knows no lock "imprt" under the prefix "`+prefix+`"`)
}
