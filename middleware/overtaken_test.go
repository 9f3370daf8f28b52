package middleware

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/redistest"
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

// hold has the calls from now on wait for what it returns to be closed.
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

// A load of the same page or variant is under way that began before the invalidation. Who asks afterwards joins it, and
// must not get what it brings.
func TestWhoAsksAfterAnInvalidationDoesNotGetWhatALoadFromBeforeBrings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		invalidate func(f *fleet) error
		other      int // the instance that asks afterwards
	}{
		"by request":            {func(f *fleet) error { return f.invalidate("/a/1") }, 0},
		"by tag":                {func(f *fleet) error { return f.caches[1].InvalidateTags(f.t.Context(), "t1") }, 0},
		"by prefix":             {func(f *fleet) error { return f.caches[1].InvalidatePrefix(f.t.Context(), "/a/") }, 0},
		"by request, elsewhere": {func(f *fleet) error { return f.invalidate("/a/1") }, 1},
		"by tag, elsewhere":     {func(f *fleet) error { return f.caches[1].InvalidateTags(f.t.Context(), "t1") }, 1},
		"by prefix, elsewhere":  {func(f *fleet) error { return f.caches[1].InvalidatePrefix(f.t.Context(), "/a/") }, 1},
	} {
		for _, value := range []string{"", "v"} {
			t.Run(name+" "+value, func(t *testing.T) {
				t.Parallel()
				v := newVersioned("Cache-Control: max-age=0", `ETag: "a"`, "Vary: X-A", "Cache-Tag: t1")
				f := newFleet(t, 2, Config{Prefixes: []string{"/a/"}}, v)
				f.get("/a/1", "X-A: w")      // the page
				f.get("/a/1", "X-A: "+value) // its variant, whose tags are known from now on
				hold := v.hold()
				before := f.async(0, "/a/1", "X-A: "+value)
				for range 3 {
					equal(t, "read", <-v.begun, "old")
				}
				v.set("new")
				equal(t, "error", c.invalidate(f), nil)
				v.release()
				equal(t, "the page", f.do(1, "GET", "/a/1", "X-A: w").body, "new")
				<-v.begun
				after := f.async(c.other, "/a/1", "X-A: "+value)
				redistest.Await(t, "it joins, or is on its own", func() bool {
					return f.joined.Load() > 0 || len(v.begun) > 0 || c.other == 1 && f.registered("/a/1") == 1
				})
				close(hold)
				equal(t, "who asked before", (<-before).body, "old")
				equal(t, "who asked afterwards", (<-after).body, "new")
			})
		}
	}
}

// The same, of the page's own record.
func TestWhoAsksAfterAnInvalidationDoesNotJoinALoadOfThePageFromBefore(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(f *fleet) error{
		"by request": func(f *fleet) error { return f.invalidate("/a/1") },
		"by tag":     func(f *fleet) error { return f.caches[1].InvalidateTags(f.t.Context(), "t1") },
		"by prefix":  func(f *fleet) error { return f.caches[1].InvalidatePrefix(f.t.Context(), "/a/") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVersioned("Cache-Control: max-age=0", `ETag: "a"`, "Cache-Tag: t1")
			f := newFleet(t, 2, Config{Prefixes: []string{"/a/"}}, v)
			f.get("/a/1")
			f.stored()
			hold := v.hold()
			before := f.async(0, "/a/1")
			equal(t, "read", <-v.begun, "old")
			equal(t, "read", <-v.begun, "old")
			v.set("new")
			equal(t, "error", invalidate(f), nil)
			v.release()
			after := f.async(0, "/a/1")
			f.awaitJoined(1)
			close(hold)
			equal(t, "who asked before", (<-before).body, "old")
			equal(t, "who asked afterwards", (<-after).body, "new")
		})
	}
}

// A request finds a page that has to be made anew, and joins the load of it. The page is invalidated, so the request asks
// again: what it found is not the page any more, and must not lend it its id, by which its variants are known.
func TestAnInvalidatedPageIsNotMadeAnewUnderItsOldId(t *testing.T) {
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
		equal(t, "read", <-v.begun, "old")
	}
	second := f.async(0, "/a/1", "X-A: w")
	f.awaitJoined(1)
	v.set("new")
	equal(t, "error", f.invalidate("/a/1"), nil)
	v.release()
	close(hold)
	equal(t, "who began the load", (<-first).body, "old")
	equal(t, "who asks again", (<-second).body, "new")
	equal(t, "the variant", f.get("/a/1", "X-A: v").body, "new")
}

// Nobody knows the tags of a page that is made for the first time. Its response is not stored then, and is none for who asked
// after the invalidation either.
func TestWhoAsksAfterAnInvalidationDoesNotJoinTheFirstLoadOfThePage(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(f *fleet) error{
		"by tag":    func(f *fleet) error { return f.caches[1].InvalidateTags(f.t.Context(), "t1") },
		"by prefix": func(f *fleet) error { return f.caches[1].InvalidatePrefix(f.t.Context(), "/a/") },
	} {
		for where, instance := range map[string]int{"same instance": 0, "other instance": 1} {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				v := newVersioned("Cache-Control: max-age=60", "Cache-Tag: t1")
				f := newFleet(t, 2, Config{Prefixes: []string{"/a/"}}, v)
				hold := v.hold()
				before := f.async(0, "/a/1")
				equal(t, "read", <-v.begun, "old")
				v.set("new")
				equal(t, "error", invalidate(f), nil)
				v.release()
				after := f.async(instance, "/a/1")
				if instance == 0 {
					f.awaitJoined(1)
				} else {
					f.awaitRegistered("/a/1", 1)
				}
				close(hold)
				equal(t, "who asked before", (<-before).body, "old")
				equal(t, "who asked afterwards", (<-after).body, "new")
				equal(t, "and again", f.get("/a/1").body, "new")
			})
		}
	}
}
