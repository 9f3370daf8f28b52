package middleware

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// versioned is a page whose handler reads its content when it is called and may be held up before it answers.
type versioned struct {
	text  atomic.Pointer[string]
	holds atomic.Pointer[chan struct{}]
	begun chan string // what each call has read
	head  []string
}

func newVersioned(head ...string) *versioned {
	v := &versioned{begun: make(chan string, 100), head: head}
	v.set("old")
	v.release()
	return v
}

func (v *versioned) set(text string) { v.text.Store(&text) }

// hold makes further calls wait until the channel that it returns is closed.
func (v *versioned) hold() chan struct{} {
	c := make(chan struct{})
	v.holds.Store(&c)
	return c
}

func (v *versioned) release() { close(v.hold()) }

func (v *versioned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, hold := *v.text.Load(), *v.holds.Load()
	v.begun <- text
	<-hold
	says("", v.head...)(w, r)
	_, _ = io.WriteString(w, text)
}

// A request after an invalidation joins a load of the same page or variant that began before it, and must not get its result.
func TestARequestAfterAnInvalidationDoesNotGetTheResultOfAnEarlierLoad(t *testing.T) {
	t.Parallel()
	for name, invalidate := range ways("by request", "by tag", "by prefix") {
		for i, value := range []string{"", "v", "", "v"} {
			instance := i / 2 // which is asked afterwards
			t.Run(fmt.Sprintf("%s %s on %d", name, value, instance), func(t *testing.T) {
				t.Parallel()
				v := newVersioned("Cache-Control: max-age=0", `ETag: "a"`, "Vary: X-A", "Cache-Tag: t1")
				f := newFleet(t, 2, Config{Prefixes: []string{"/a/"}}, v)
				f.get("/a/1", "X-A: w")      // the page
				f.get("/a/1", "X-A: "+value) // its variant, whose tags are known from now on
				hold := v.hold()
				before := f.async(0, "/a/1", "X-A: "+value)
				for range 3 {
					expect.Equal(t, "read", <-v.begun, "old")
				}
				v.set("new")
				invalidate(f)
				v.release()
				expect.Equal(t, "the page", f.do(1, "GET", "/a/1", "X-A: w").body, "new")
				<-v.begun
				after := f.async(instance, "/a/1", "X-A: "+value)
				redistest.Await(t, "it joins, or is on its own", func() bool {
					return f.joined.Load() > 0 || len(v.begun) > 0 || instance == 1 && f.registered("/a/1") == 1
				})
				close(hold)
				expect.Equal(t, "the request before", (<-before).body, "old")
				expect.Equal(t, "the request afterwards", (<-after).body, "new")
			})
		}
	}
}

// The same for the page's own record.
func TestARequestAfterAnInvalidationDoesNotJoinAnEarlierLoadOfThePage(t *testing.T) {
	t.Parallel()
	for name, invalidate := range ways("by request", "by tag", "by prefix") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVersioned("Cache-Control: max-age=0", `ETag: "a"`, "Cache-Tag: t1")
			f := newFleet(t, 2, Config{Prefixes: []string{"/a/"}}, v)
			f.warm("/a/1")
			hold := v.hold()
			before := f.async(0, "/a/1")
			expect.Equal(t, "read", <-v.begun, "old")
			expect.Equal(t, "read", <-v.begun, "old")
			v.set("new")
			invalidate(f)
			v.release()
			f.joinedNobody()
			after := f.async(0, "/a/1")
			f.joins(1)
			close(hold)
			expect.Equal(t, "the request before", (<-before).body, "old")
			expect.Equal(t, "the request afterwards", (<-after).body, "new")
		})
	}
}

// A request finds a page that has to be rebuilt, and joins its load. The page is invalidated, so the request asks again. The record that
// it found must not lend its ID to the new page, because the old variants are known by that ID.
func TestAnInvalidatedPageGetsANewID(t *testing.T) {
	t.Parallel()
	v := newVersioned("Vary: X-A", `ETag: "a"`)
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.Header.Get("X-A") == "w" {
			w.Header().Set("Cache-Control", "no-cache")
		}
		v.ServeHTTP(w, r)
	}))
	f.get("/a/1", "X-A: w") // the page
	f.get("/a/1", "X-A: v") // its variant
	f.stored()
	hold := v.hold()
	first := f.async(0, "/a/1", "X-A: w")
	for range 3 {
		expect.Equal(t, "read", <-v.begun, "old")
	}
	f.joinedNobody()
	second := f.async(0, "/a/1", "X-A: w")
	f.joins(1)
	v.set("new")
	expect.Equal(t, "error", f.invalidate("/a/1"), nil)
	v.release()
	close(hold)
	expect.Equal(t, "the request that began the load", (<-first).body, "old")
	expect.Equal(t, "the request that asks again", (<-second).body, "new")
	expect.Equal(t, "the variant", f.get("/a/1", "X-A: v").body, "new")
}

// Nobody knows the tags of a page that is made for the first time. If a tag is invalidated meanwhile, the response is not stored, and
// requests that began after the invalidation do not get it.
func TestARequestAfterAnInvalidationDoesNotJoinTheFirstLoadOfThePage(t *testing.T) {
	t.Parallel()
	for name, invalidate := range ways("by tag", "by prefix") {
		for where, instance := range map[string]int{"same instance": 0, "other instance": 1} {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				v := newVersioned(fresh, "Cache-Tag: t1")
				f := newFleet(t, 2, Config{Prefixes: []string{"/a/"}}, v)
				hold := v.hold()
				before := f.async(0, "/a/1")
				expect.Equal(t, "read", <-v.begun, "old")
				v.set("new")
				invalidate(f)
				v.release()
				after := f.async(instance, "/a/1")
				if instance == 0 {
					f.joins(1)
				} else {
					f.waits("/a/1", 1)
				}
				close(hold)
				expect.Equal(t, "the request before", (<-before).body, "old")
				expect.Equal(t, "the request afterwards", (<-after).body, "new")
				expect.Equal(t, "and again", f.get("/a/1").body, "new")
			})
		}
	}
}
