package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
)

// What a process of the demo finds in its environment: the ways to Redis and to the database, and the Prefix.
const (
	wireVariable   = "CACHEGUARD_DEMO_WIRE"
	tableVariable  = "CACHEGUARD_DEMO_TABLE"
	prefixVariable = "CACHEGUARD_DEMO_PREFIX"
)

// process is another process of this program: a service of its own, which follows orders from its standard input.
type process struct {
	name    string
	command *exec.Cmd
	mu      sync.Mutex // one order at a time
	orders  *json.Encoder
	answers *json.Decoder
}

type order struct {
	Do         string
	Key, Value string
	Callers    int
}

// seen is what came of an order.
type seen struct {
	Values  map[string]int // how many callers had which
	Failed  int
	Slowest time.Duration
	Err     string
}

func (s seen) error() error {
	if s.Err == "" {
		return nil
	}
	return errors.New(s.Err)
}

func startProcess(ctx context.Context, name, redis, wire, table, prefix string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, program)
	c.Env = append(os.Environ(), wireVariable+"="+wire, tableVariable+"="+table, prefixVariable+"="+prefix,
		"REDIS_URL="+cmp.Or(os.Getenv("REDIS_URL"), "redis://"+redis))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{name: name, command: c, orders: json.NewEncoder(in), answers: json.NewDecoder(out)}, c.Start()
}

// do gives an order, and waits for what comes of it.
func (p *process) do(o order) (s seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(p.orders.Encode(o), p.answers.Decode(&s)); err != nil {
		return seen{Err: "process " + p.name + ": " + err.Error()}
	}
	return s
}

func (p *process) kill() { _ = p.command.Process.Kill() } // it may be dead

func (p *process) stop() {
	p.kill()
	_ = p.command.Wait() // it was killed
}

// follower is what runs in such a process.
type follower struct {
	guard  *cacheguard.Guard
	table  string // its address
	intent *cacheguard.Intent
}

// isProcess reports whether this is a process of a demo.
func isProcess() bool { return os.Getenv(wireVariable) != "" }

// follow is such a process: it follows orders until there are no more.
func follow(ctx context.Context, in io.Reader, out io.Writer) error {
	server, err := backends.Redis(ctx)
	if err != nil {
		return err
	}
	rdb := server.NewClientThrough(os.Getenv(wireVariable), backends.Patience)
	defer rdb.Close()
	f := &follower{table: os.Getenv(tableVariable)}
	f.guard, err = cacheguard.New(rdb, cacheguard.Config{
		Prefix: os.Getenv(prefixVariable), TTL: time.Hour, LeaseTTL: leaseTTL, RedisTimeout: backends.Patience,
		HedgeAfter: -1, // queries are counted, also on a busy machine
	})
	if err != nil {
		return err
	}
	defer f.guard.Close()
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return err
		}
		s, err := f.do(ctx, o)
		if err != nil {
			s.Err = err.Error()
		}
		if err := answers.Encode(s); err != nil {
			return err
		}
	}
}

func (f *follower) do(ctx context.Context, o order) (s seen, err error) {
	write := func(ctx context.Context) error { return f.send(ctx, http.MethodPut, o.Key, o.Value) }
	commit := func(ctx context.Context) error { return f.send(ctx, http.MethodPost, "commit", "") }
	switch o.Do {
	case "get":
		return f.get(ctx, o.Key, o.Callers), nil
	case "update": // without the commit
		return s, f.guard.Update(ctx, o.Key, write)
	case "write":
		return s, f.guard.Update(ctx, o.Key, func(ctx context.Context) error { return errors.Join(write(ctx), commit(ctx)) })
	case "write-invalidate":
		if err := errors.Join(write(ctx), commit(ctx)); err != nil {
			return s, err
		}
		return s, f.guard.Invalidate(ctx, o.Key)
	case "invalidate":
		return s, f.guard.Invalidate(ctx, o.Key)
	case "intend":
		if f.intent, err = f.guard.Intend(ctx, cacheguard.Changes{Keys: []string{o.Key}}); err != nil {
			return s, err
		}
		return s, write(ctx)
	case "commit":
		err = commit(ctx)
		if f.intent != nil {
			err = errors.Join(err, f.intent.Done(ctx))
		}
		return s, err
	case "settle": // until Redis has all that was pending, and is asked again
		for stats := f.guard.Stats(); stats.Pending > 0 || stats.BreakersOpen > 0; stats = f.guard.Stats() {
			wait(ctx, 10*time.Millisecond)
		}
	}
	return s, nil
}

// get has callers ask at once.
func (f *follower) get(ctx context.Context, key string, callers int) seen {
	s := seen{Values: make(map[string]int)}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			began := time.Now()
			value, err := cacheguard.Get(ctx, f.guard, key, func(ctx context.Context) (string, error) { return f.query(ctx, key) })
			mu.Lock()
			defer mu.Unlock()
			s.Slowest = max(s.Slowest, time.Since(began))
			if err != nil {
				s.Failed++
				s.Err = err.Error()
				return
			}
			s.Values[value]++
		})
	}
	all.Wait()
	return s
}

func (f *follower) query(ctx context.Context, key string) (string, error) {
	return f.request(ctx, http.MethodGet, key, "")
}

func (f *follower) send(ctx context.Context, method, path, body string) error {
	_, err := f.request(ctx, method, path, body)
	return err
}

func (f *follower) request(ctx context.Context, method, path, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+f.table+"/"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}
