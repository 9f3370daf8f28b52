package main

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/observe"
	"github.com/cacheguard/go/metrics"
)

// Whoever adds a number names it once: this adds one, and changes nobody who shows numbers.
func TestANumberThatIsAddedIsShownEverywhere(t *testing.T) {
	t.Parallel()
	const name, help = "biscuits_total", "Biscuits that were eaten."
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: "biscuits", Instance: "kitchen"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	seen, _ := observe.Look[observe.Guard](guard)
	seen.Numbers.Total(name, help).Add(7)

	all := slices.Collect(guard.Stats().All())
	expect.Equal(t, "in Stats", all[len(all)-1], cacheguard.Number{Name: name, Help: help, Value: 7})
	expect.Equal(t, "by its name", guard.Stats().Of(name), 7)

	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{})
	expect.ErrorIs(t, err)
	m.Watch("kitchen", guard)
	families, err := registry.Gather()
	expect.ErrorIs(t, err)
	exported := ""
	for _, f := range families {
		if f.GetName() == "cacheguard_"+name {
			exported = f.String()
		}
	}
	for _, part := range []string{help, "COUNTER", "value:7", "kitchen"} {
		expect.Equal(t, "metrics have "+part+": "+exported, strings.Contains(exported, part), true)
	}

	page := httptest.NewServer(admin.New(guard))
	t.Cleanup(page.Close)
	ctl(t, at(shared), "--prefix", "biscuits", "stats", "--page", page.URL).want(t, done, name, help, "7")
	ctl(t, at(shared), "--prefix", "biscuits", "--json", "stats", "--page", page.URL).want(t, done, `"`+name+`":7`)
	ctl(t, at(shared), "--prefix", "biscuits", "--json", "watch", "--every", "100ms", "--count", "1", "--page", page.URL).want(t, done, `"`+name+`":7`)
}
