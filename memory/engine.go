package memory

import (
	"bytes"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// engine is what a server is to other clients: its keys, who listens, and one command or script at a time.
type engine struct {
	now func() time.Time

	mu      sync.Mutex
	closed  bool
	last    int64 // what the clock showed last, in µs
	keys    store
	scripts map[string]function // by the hash of their text
	heard   map[string]map[*conn]struct{}
	first   *conn // see open

	planted func(name string, r *run) // of tests: makes a difference in what follows
	said    func(channel, message string)
}

func newEngine(cfg Config) *engine {
	e := &engine{now: cfg.Now, scripts: make(map[string]function), heard: make(map[string]map[*conn]struct{})}
	if e.now == nil {
		began := time.Now()
		e.now = func() time.Time { return began.Add(time.Since(began)) } // nobody sets the monotonic clock
	}
	e.keys.max = cfg.MaxBytes
	e.keys.items = make(map[string]*item)
	return e
}

// do runs a command.
func (e *engine) do(args []string) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	r := e.begin()
	reply := r.command(args)
	if r.err != nil {
		return r.err
	}
	return reply
}

// get is GET.
func (e *engine) get(key string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return "", errClosed
	}
	r := e.begin()
	value, there := r.get(key)
	switch {
	case r.err != nil:
		return "", r.err
	case !there:
		return "", redis.Nil
	}
	return value, nil
}

// begin frees what has expired. Nothing expires while a command or a script runs.
func (e *engine) begin() *run {
	e.last = max(e.last, e.now().UnixMicro())
	e.keys.expire(e.last / 1000)
	return &run{engine: e, keys: &e.keys, micros: e.last, now: e.last / 1000}
}

func (e *engine) opened(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == nil {
		e.first = c
	}
}

// left has a connection leave. The first one ends with the client.
func (e *engine) left(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for channel, all := range e.heard {
		if delete(all, c); len(all) == 0 {
			delete(e.heard, channel)
		}
	}
	if c == e.first {
		e.closed = true
		e.keys = store{}
	}
}

func (e *engine) subscribe(c *conn, channel string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard[channel] == nil {
		e.heard[channel] = make(map[*conn]struct{})
	}
	e.heard[channel][c] = struct{}{}
	c.send(func(out *bytes.Buffer) {
		c.channels[channel] = struct{}{}
		encode(out, []any{"subscribe", channel, int64(len(c.channels))})
	})
}

// unsubscribe ends a connection's subscriptions to the channels; none named: to all.
func (e *engine) unsubscribe(c *conn, channels []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.send(func(out *bytes.Buffer) {
		if len(channels) == 0 {
			for channel := range c.channels {
				channels = append(channels, channel)
			}
		}
		for _, channel := range channels {
			delete(c.channels, channel)
			encode(out, []any{"unsubscribe", channel, int64(len(c.channels))})
		}
		if len(channels) == 0 {
			encode(out, []any{"unsubscribe", nil, int64(0)})
		}
	})
	for _, channel := range channels {
		delete(e.heard[channel], c)
	}
}

// publish returns how many get the message. The caller has mu.
func (e *engine) publish(channel, message string) int64 {
	if e.said != nil {
		e.said(channel, message)
	}
	for c := range e.heard[channel] {
		c.send(func(out *bytes.Buffer) { encode(out, []any{"message", channel, message}) })
	}
	return int64(len(e.heard[channel]))
}
