package main

import (
	"net/http"
	"sync"
)

// calls counts calls of handlers, over all instances.
type calls struct {
	mu      sync.Mutex
	total   int
	running map[string]int // by path
	most    int            // at once, for one path
}

func newCalls() *calls { return &calls{running: make(map[string]int)} }

func (c *calls) begin(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.running[path]++
	c.most = max(c.most, c.running[path])
}

func (c *calls) end(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[path]--
}

// counted is a handler whose calls are counted.
func (a *api) counted(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.calls.begin(r.URL.Path)
		defer a.calls.end(r.URL.Path)
		h(w, r)
	}
}

// counted returns what was counted so far.
func (c *calls) counted() (total, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, c.most
}
