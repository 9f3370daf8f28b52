package middleware

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// film is a page of 1000 bytes behind caches that keep ten slices of it.
type film struct {
	*page

	mu     sync.Mutex
	ranges []string // that the handler was asked for; empty: the whole
	edit   string   // the ETag, and what the body is made of
	header []string
}

var inSlices = Config{MaxBody: 200, SliceBytes: 100, Prefixes: []string{"/a/"}}

func newFilm(header ...string) *film {
	f := &film{edit: "a", header: header}
	f.page = newPage(f.serve)
	return f
}

func (f *film) serve(w http.ResponseWriter, r *http.Request) {
	edit := f.edition()
	f.mu.Lock()
	f.ranges = append(f.ranges, strings.TrimPrefix(r.Header.Get("Range"), "bytes="))
	f.mu.Unlock()
	h := w.Header()
	h.Set("Cache-Control", "max-age=60")
	h.Set("Etag", `"`+edit+`"`)
	h.Set("Content-Type", "video/mp4")
	for _, line := range f.header {
		name, value, _ := strings.Cut(line, ":")
		h.Set(name, strings.TrimSpace(value))
	}
	modified, _ := http.ParseTime(h.Get("Last-Modified"))
	http.ServeContent(w, r, "", modified, strings.NewReader(filmed(edit)))
}

// filmed is the body of a film: every few bytes say where they are.
func filmed(edit string) string {
	var b bytes.Buffer
	for i := range 200 {
		fmt.Fprintf(&b, "%s%03d ", edit, i)
	}
	return b.String()
}

func (f *film) edition() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.edit
}

// change replaces the film by another one.
func (f *film) change(edit string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edit = edit
}

// withoutTTL is the Cache-Status without its ttl.
func (a answer) withoutTTL() string {
	var kept []string
	for param := range strings.SplitSeq(a.cacheStatus(), "; ") {
		if !strings.HasPrefix(param, "ttl=") {
			kept = append(kept, param)
		}
	}
	return strings.Join(kept, "; ")
}

// asked is what the handler was asked for since the last time.
func (f *film) asked() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := strings.Join(f.ranges, " ")
	f.ranges = nil
	return list
}

// slices is the number of slices in Redis.
func (f *fleet) slices() (n int) {
	f.t.Helper()
	keys, err := shared.Client(f.t).Keys(f.t.Context(), f.prefix+"*slice:*").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, key := range keys {
		if kind, err := shared.Client(f.t).Type(f.t.Context(), key).Result(); err == nil && kind == "string" {
			n++
		}
	}
	return n
}

// learn makes the cache store the record of a page in slices, and none of its slices.
func (f *fleet) learn(path string) {
	f.t.Helper()
	f.do(0, http.MethodHead, path)
	f.stored()
}
