package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/middleware"
)

// One label that is not UTF-8 fails the scrape of a whole registry. So a name is refused, or made valid.
func FuzzNoNameSpoilsAScrapeOrALog(f *testing.F) {
	for _, name := range []string{"shop", "", "a\xffb", "\xc3\x28", "é", "a\x00b", "\U0010ffff", "{x}", "a:b"} {
		f.Add(name, name)
		f.Add("shop", name)
	}
	f.Fuzz(func(t *testing.T, name, key string) {
		registry, log := prometheus.NewPedanticRegistry(), new(bytes.Buffer)
		m, err := New(registry, Config{Routes: []string{name}, TraceID: func(context.Context) string { return name }})
		if err != nil {
			t.Fatal(err)
		}
		cfg := cacheguard.Config{Prefix: name, Instance: name, Observers: []cacheguard.Observer{m.Guard(name)}, Logger: slog.New(slog.NewJSONHandler(log, nil))}
		g, err := cacheguard.New(shared.Client(t), cfg)
		if err != nil { // it is refused: the rest counts all the same
			if !utf8.ValidString(err.Error()) {
				t.Errorf("the refusal is not UTF-8: %q", err)
			}
			cfg.Prefix, cfg.Instance = "", ""
			if g, err = cacheguard.New(shared.Client(t), cfg); err != nil {
				t.Fatal(err)
			}
		}
		defer func() { _ = g.Close() }() // always nil
		m.Watch(name, g)
		m.Feed(name, func() cdc.Stats { return cdc.Stats{HeldBy: name} })
		locks := m.Lock(name)
		locks.OnLock(name, time.Millisecond, nil)
		m.HTTP(name)(nil, middleware.Response{Route: name, Result: middleware.Passed, NotStored: name})
		load := func(context.Context) (string, error) { return "v", nil }
		_, _ = cacheguard.Get(t.Context(), g, key, load)
		_ = g.InvalidateTags(t.Context(), key)
		_ = g.Invalidate(t.Context(), key)
		if c, err := cacheguard.NewCache(g, cacheguard.CacheConfig[string, string]{
			Name: name, Load: func(context.Context, string) (string, error) { return "v", nil },
		}); err == nil {
			_, _ = c.Get(t.Context(), key)
		}
		if _, err := registry.Gather(); err != nil {
			t.Errorf("the scrape fails: %v", err)
		}
		_ = g.Close() // always nil; the log is whole
		for line := range bytes.Lines(log.Bytes()) {
			if !utf8.Valid(line) || !json.Valid(line) {
				t.Errorf("a line of the log is not JSON in UTF-8: %q", line)
			}
		}
	})
}
