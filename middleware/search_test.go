package middleware

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// listing is a page that says by itself which parameters do not matter, as the request's Search field has it.
func listing(search string) *page {
	p := newPage(nil)
	p.serve = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("No-Vary-Search", search)
		says(fmt.Sprint(r.URL.RawQuery, " ", p.calls.Load()), fresh, "Cache-Tag: all", `Cache-Groups: "all"`)(w, r)
	}
	return p
}

func TestAPageIsFoundUnderURLsThatDifferInParametersThatDoNotMatter(t *testing.T) {
	t.Parallel()
	p := listing(`params=("utm" "gclid")`)
	f := newFleet(t, 2, Config{}, p)
	f.warm("/list?utm=0") // the instance learns
	f.warm("/list?id=1&utm=1")
	calls := p.calls.Load()
	for _, path := range []string{"/list?id=1", "/list?utm=7&id=1", "/list?id=1&gclid=3&utm", "/list?id=1&"} {
		a := f.get(path)
		expect.Equal(t, path, a.body, fmt.Sprint("id=1&utm=1 ", calls))
		expect.Equal(t, path+": a hit", strings.HasPrefix(a.cacheStatus(), "cacheguard; hit"), true)
	}
	expect.Equal(t, "calls", p.calls.Load(), calls)
	expect.Equal(t, "another", f.get("/list?id=2&utm=1").body, fmt.Sprint("id=2&utm=1 ", calls+1))
	expect.Equal(t, "none", f.get("/list?utm=1").body, fmt.Sprint("utm=1 ", calls+2))
	expect.Equal(t, "another path", f.get("/other?utm=1").body, fmt.Sprint("utm=1 ", calls+3))

	f.do(1, http.MethodGet, "/list?utm=another-instance") // it learns with a call
	before := p.calls.Load()
	expect.Equal(t, "there", f.do(1, http.MethodGet, "/list?id=1&utm=9").body, fmt.Sprint("id=1&utm=1 ", calls))
	expect.Equal(t, "without a call", p.calls.Load(), before)
}

// The instance that invalidates knows nothing of the field: another instance may have learned it.
func TestPagesWhoseParametersDoNotMatterAreInvalidatedByAnyOfTheirURLs(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(f *fleet) error{
		"Invalidate":       func(f *fleet) error { return f.invalidateOn(1, "/list?id=1") },
		"with others":      func(f *fleet) error { return f.invalidateOn(1, "/list?utm=3&id=1") },
		"without a query":  func(f *fleet) error { return f.invalidateOn(1, "/list") },
		"POST":             func(f *fleet) error { _, err := f.try(1, http.MethodPost, "/list?id=1&utm=4"); return err },
		"a tag":            func(f *fleet) error { return f.caches[1].InvalidateTags(f.t.Context(), "all") },
		"a prefix":         func(f *fleet) error { return f.caches[1].InvalidatePrefix(f.t.Context(), "/li") },
		"Content-Location": func(f *fleet) error { _, err := f.try(1, http.MethodPost, "/other?at"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := listing(`params=("utm")`)
			serve := p.serve
			p.serve = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "at" {
					w.Header().Set("Content-Location", "/list?id=1")
					return
				}
				serve(w, r)
			}
			f := newFleet(t, 2, Config{Prefixes: []string{"/li"}}, p)
			f.warm("/list?id=1")
			f.warm("/list?id=2&utm=1")
			f.warm("/list?id=1&utm=2")
			if err := invalidate(f); err != nil {
				t.Fatal(err)
			}
			before := p.calls.Load()
			f.get("/list?id=1&utm=5")
			expect.Equal(t, "made anew", p.calls.Load(), before+1)
		})
	}
}

func (f *fleet) invalidateOn(i int, path string) error {
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return err
	}
	return f.caches[i].Invalidate(f.t.Context(), r)
}

// The first response of a path that an instance makes belongs to no single URL either.
func TestWhatAnInstanceThatHasLearntNothingServesIsInvalidatedByAnyOfItsURLs(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]func(f *fleet) error{
		"Invalidate": func(f *fleet) error { return f.invalidateOn(0, "/p?id=1") },
		"POST":       func(f *fleet) error { _, err := f.try(0, http.MethodPost, "/p?id=1"); return err },
	} {
		p := listing(`params=("utm_source")`)
		f := newFleet(t, 3, Config{}, p)
		f.warm("/p?id=1&utm_source=mail")
		f.warm("/p?id=1&utm_source=mail")
		before := p.calls.Load()
		a := f.do(1, http.MethodGet, "/p?id=1&utm_source=mail") // it learns from what the other left
		expect.Equal(t, name+": a hit", isHit(a), true)
		expect.Equal(t, name+": calls", p.calls.Load(), before)
		if err := by(f); err != nil {
			t.Fatal(err)
		}
		before = p.calls.Load()
		for i := range 3 {
			a := f.do(i, http.MethodGet, "/p?id=1&utm_source=mail")
			expect.Equal(t, fmt.Sprint(name, ", instance ", i, ": made anew"), strings.HasSuffix(a.body, fmt.Sprint(" ", before+1)), true)
			f.stored()
		}
	}
}

// What the path says changes: no page is served under a rule that it did not state.
func TestAPageThatSaysSomethingElseIsNotServedByTheOldRule(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]string{"nothing": "", "less": `params=("gclid")`, "garbage": `params=(`, "the order": "key-order"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := `params=("utm" "id")`
			p := newPage(nil)
			p.serve = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("No-Vary-Search", says)
				_, _ = fmt.Fprint(w, r.URL.RawQuery)
			}
			f := newFleet(t, 1, Config{}, p)
			f.warm("/list?id=1")
			f.warm("/list?id=2")
			expect.Equal(t, "shared", f.get("/list?id=3").body, "id=2")
			if err := f.invalidate("/list"); err != nil {
				t.Fatal(err)
			}
			says = now
			for range 3 {
				for _, id := range []string{"4", "5"} {
					expect.Equal(t, id, f.get("/list?id="+id).body, "id="+id)
				}
			}
		})
	}
}

func TestA304ThatSaysSomethingElseIsNoConfirmation(t *testing.T) {
	t.Parallel()
	said := `params=("utm" "id")`
	p := newPage(nil)
	p.serve = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Etag", `"1"`)
		w.Header().Set("No-Vary-Search", said)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = fmt.Fprint(w, r.URL.RawQuery)
	}
	f := newFleet(t, 1, Config{}, p)
	f.warm("/list?id=1")
	f.warm("/list?id=2")
	expect.Equal(t, "confirmed", f.get("/list?id=3").body, "id=2")
	said = ""
	expect.Equal(t, "not confirmed", f.get("/list?id=4").body, "id=4")
	expect.Equal(t, "not confirmed", f.get("/list?id=5").body, "id=5")
}

// A crowd with a parameter of its own each has one page made, once the path is known.
func TestOneLoadAnswersAllWhoDifferInParametersThatDoNotMatter(t *testing.T) {
	t.Parallel()
	p := listing(`params, except=("id")`)
	f := newFleet(t, 1, Config{}, p)
	f.warm("/list")
	p.held()
	before := p.calls.Load()
	var all []<-chan answer
	for i := range 50 {
		all = append(all, f.async(0, "/list?id=1&visitor="+strconv.Itoa(i)))
	}
	f.joins(49)
	close(p.hold)
	for _, c := range all {
		expect.Equal(t, "status", (<-c).StatusCode, http.StatusOK)
	}
	expect.Equal(t, "calls", p.calls.Load(), before+1)
}

func TestLimitsCountWhatMattersOfAQuery(t *testing.T) {
	t.Parallel()
	p := listing(`params=("utm")`)
	f := newFleet(t, 1, Config{Limits: Limits{Pages: 3, Variants: 1}}, p)
	f.warm("/list?utm=0")
	for i := range 5 {
		path := fmt.Sprint("/list?id=", i)
		f.warm(path + "&utm=1")
		before := p.calls.Load()
		f.get(path + "&utm=2")
		expect.Equal(t, path, p.calls.Load() == before, i < 3)
	}
}

func TestALongPathLearnsNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, listing("params"))
	expect.Equal(t, "a long path", f.get("/"+strings.Repeat("x", 500)+"?a").StatusCode, http.StatusOK)
	expect.Equal(t, "and again", f.get("/" + strings.Repeat("x", 500) + "?b").body[:1], "b")
}

// A page in slices has the rule of its header.
func TestPagesInSlicesMayShareAnyParameters(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 3000)
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Etag", `"1"`)
		w.Header().Set("No-Vary-Search", "params")
		http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader(body))
	})
	f := newFleet(t, 1, Config{MaxBody: 1000, SliceBytes: 1000}, p)
	f.warm("/film?a")
	f.warm("/film?b")
	f.warm("/film?c") // its slices
	before := p.calls.Load()
	expect.Equal(t, "bytes", len(f.get("/film?d").body), 3000)
	expect.Equal(t, "calls", p.calls.Load(), before)
}
