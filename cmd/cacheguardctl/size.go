package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/metrics"
)

// size measures what entries take in this Redis, under a prefix of its own, and what an instance takes.
type size struct {
	Payload   []int `default:"100,1000,10000" help:"Bytes of a value."`
	Tags      []int `default:"0,1,4" help:"Tags of an entry, of 7 bytes each."`
	Instances []int `default:"10,100,1000" help:"Instances of a fleet."`
	Pool      int   `default:"20" help:"PoolSize of an instance's client: the connections that it may open."`
	Pipelines int   `default:"10" help:"PipelinePoolSize of the client: 0 for -1, and for a go-redis below 9.23."`
	Caches    int   `default:"10" help:"Caches of an instance's Guard, for the series of its metrics."`
	Samples   int   `default:"20" help:"Entries of each kind."`
}

// entrySize is what an entry takes, on average.
type entrySize struct {
	Payload   int     `json:"payload"`
	Tags      int     `json:"tags"`
	Of        string  `json:"of"`         // no cache, a cache, or a cache with a version
	String    float64 `json:"string"`     // bytes of the string in Redis
	Memory    float64 `json:"memory"`     // of the server, with its key
	PlainMore float64 `json:"plain_more"` // of Memory, what a plain SET of the same bytes under the same key does without
}

// fleetSize is what a fleet takes. Of connections, it is the most.
type fleetSize struct {
	Instances   int `json:"instances"`
	Connections int `json:"connections"`
	Messages    int `json:"messages"` // that an invalidation sends, when all have a local tier
	Series      int `json:"series"`   // of package metrics
}

// sized is what was measured.
type sized struct {
	Entries    []entrySize `json:"entries"`
	Goroutines int         `json:"goroutines"` // of a Guard that waits for messages, with its subscription
	Fleets     []fleetSize `json:"fleets"`
}

func (r sized) rows() [][]string {
	rows := [][]string{{"ENTRY", "PAYLOAD", "TAGS", "STRING", "MEMORY", "MORE THAN A SET"}}
	for _, s := range r.Entries {
		rows = append(rows, []string{s.Of, strconv.Itoa(s.Payload), strconv.Itoa(s.Tags), round(s.String), round(s.Memory), round(s.PlainMore)})
	}
	rows = append(rows, []string{""}, []string{"INSTANCES", "CONNECTIONS, AT MOST", "MESSAGES BY INVALIDATION", "SERIES OF METRICS", "GOROUTINES EACH"})
	for _, f := range r.Fleets {
		rows = append(rows, []string{strconv.Itoa(f.Instances), strconv.Itoa(f.Connections), strconv.Itoa(f.Messages), strconv.Itoa(f.Series), strconv.Itoa(r.Goroutines)})
	}
	return rows
}

func round(bytes float64) string { return strconv.FormatFloat(bytes, 'f', 0, 64) }

// Run is called by kong.
func (c *size) Run(e *env) (err error) {
	prefix := "cacheguardctl-size-" + rand.Text()
	made := &ledger{}
	e.rdb.AddHook(after(made.note))
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, made.remove(ctx, e.rdb))
	}()
	r := sized{Entries: []entrySize{}, Fleets: []fleetSize{}}
	if r.Goroutines, err = c.goroutines(e, prefix); err != nil {
		return err
	}
	for i, of := range []string{"no cache", "a cache", "a cache with a version"} {
		for _, payload := range c.Payload {
			for _, tags := range c.Tags {
				s := entrySize{Payload: payload, Tags: tags, Of: of}
				if err := c.measure(e, prefix, i, &s); err != nil {
					return err
				}
				r.Entries = append(r.Entries, s)
			}
		}
	}
	series, err := seriesOf(e.rdb, c.Caches)
	if err != nil {
		return err
	}
	for _, n := range c.Instances {
		r.Fleets = append(r.Fleets, fleetSize{Instances: n, Connections: n * (c.Pool + c.Pipelines + 1), Messages: n, Series: n * series})
	}
	return e.out.print(r)
}

// goroutines returns how many goroutines a Guard has that has its subscription.
func (c *size) goroutines(e *env, prefix string) (int, error) {
	before := runtime.NumGoroutine()
	g, err := cacheguard.New(e.rdb, cacheguard.Config{Prefix: prefix, TTL: time.Minute, Local: cacheguard.LocalConfig{MaxEntries: 10}})
	if err != nil {
		return 0, err
	}
	defer g.Close()
	if err := g.SelfCheck(e.ctx); err != nil {
		return 0, err
	}
	return runtime.NumGoroutine() - before, nil
}

// measure fills in what entries of the kind take: of no cache, of one, of one with a version.
func (c *size) measure(e *env, prefix string, kind int, s *entrySize) error {
	g, err := cacheguard.New(e.rdb, cacheguard.Config{Prefix: prefix, TTL: time.Minute, Jitter: -1})
	if err != nil {
		return err
	}
	defer g.Close()
	load := func(ctx context.Context, _ string) ([]byte, error) {
		for tag := range s.Tags {
			cacheguard.SetTags(ctx, fmt.Sprint("tag:", 100+tag))
		}
		return make([]byte, s.Payload), ctx.Err()
	}
	cache, err := cacheguard.NewCache(g, cacheguard.CacheConfig[string, []byte]{Name: "size", Version: max(kind-1, 0), Load: load})
	if err != nil {
		return err
	}
	var names []string
	for i := range c.Samples {
		id := fmt.Sprint(s.Payload, "-", s.Tags, "-", i)
		name := cache.Key(id)
		if kind == 0 {
			name = "none:" + id
			_, err = cacheguard.Get(e.ctx, g, name, func(ctx context.Context) ([]byte, error) { return load(ctx, id) })
		} else {
			_, err = cache.Get(e.ctx, id)
		}
		if err != nil {
			return err
		}
		name = keys.Tagged(prefix, name)
		if kind == 2 {
			name += ":v1"
		}
		names = append(names, name)
	}
	_ = g.Close() // when all is stored; always nil
	return s.look(e.ctx, e.rdb, names)
}

// look asks for the sizes, and replaces each entry by a plain value of the same payload.
func (s *entrySize) look(ctx context.Context, rdb redis.UniversalClient, names []string) error {
	for _, name := range names {
		length, err := rdb.StrLen(ctx, name).Result()
		if err != nil {
			return err
		}
		if length == 0 {
			return fmt.Errorf("nothing was stored at %s", name)
		}
		memory, err := rdb.MemoryUsage(ctx, name).Result()
		if err != nil {
			return fmt.Errorf("the user may not ask for the memory of a key: %w", err)
		}
		if err := rdb.Set(ctx, name, make([]byte, s.Payload), time.Minute).Err(); err != nil {
			return err
		}
		plain, err := rdb.MemoryUsage(ctx, name).Result()
		if err != nil {
			return err
		}
		n := float64(len(names))
		s.String, s.Memory, s.PlainMore = s.String+float64(length)/n, s.Memory+float64(memory)/n, s.PlainMore+float64(memory-plain)/n
	}
	return nil
}

// seriesOf is how many series package metrics exports for a Guard with so many Caches. It asks Redis for nothing.
func seriesOf(rdb cacheguard.Redis, caches int) (n int, err error) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		return 0, err
	}
	counts := m.Guard("size")
	g, err := cacheguard.New(rdb, cacheguard.Config{Observers: []cacheguard.Observer{counts}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	for i := range caches {
		counts.Observe(context.Background(), cacheguard.Event{What: cacheguard.EventCache, Kind: fmt.Sprint("cache", i)})
	}
	m.Watch("size", g)
	families, err := registry.Gather()
	for _, family := range families {
		for _, one := range family.GetMetric() {
			n++
			if h := one.GetHistogram(); h != nil {
				n += len(h.GetBucket()) + 2 // with the last bucket, the sum and the count
			}
		}
	}
	return n, err
}
