package cacheguard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func onServerless(t *testing.T) arena {
	s := redistest.StartServerless(t)
	return arena{
		patience: time.Minute, // each script is looked at
		client:   func(tb testing.TB) client { return s.Client(tb) },
		around:   func(tb testing.TB) client { return s.Around(tb) },
	}
}

func TestServerlessWaitersAreWoken(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 2, Config{LeaseTTL: time.Hour, WaitTimeout: time.Hour}).listening()
	f.wakesAWaiter()
	mustInvalidate(t, f.guards[0], "k")
	f.wakesAReader()
}

func TestServerlessSelfCheck(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 1, Config{})
	expect.Equal(t, "error", f.guards[0].SelfCheck(redistest.Patiently(t)), nil)
}

// Nothing vouches for a notice that is published by the process: the echo's script is refused.
func TestServerlessTierIsNotUsed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 2, Config{Local: LocalConfig{MaxEntries: 10}})
	for i := range 2 {
		f.guards[i].inbox.Start()
		redistest.Await(t, "an inbox is subscribed", func() bool { return f.guards[i].inbox.Address() != "" })
	}
	mustGet(t, f.guards[0], "k", returns("old"))
	f.stored()
	for range 20 {
		_, how, err := get(t.Context(), f.guards[1], "k", unwanted[string](t))
		expect.Equal(t, "error", err, nil)
		expect.Equal(t, "how", how, Hit)
	}
	mustInvalidate(t, f.guards[0], "k")
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns("new")), "new")
}

func TestServerlessTierWithoutMaxLagHearsOfInvalidations(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 2, Config{Local: LocalConfig{MaxEntries: 10, MaxLag: off, TTL: time.Hour}, TTL: time.Hour}).listening()
	f.keptBy(0, "k", "old")
	mustInvalidate(t, f.guards[1], "k")
	redistest.Await(t, "it is heard of", func() bool { return mustGet(t, f.guards[0], "k", returns("new")) == "new" })
}

// WAIT is not to be had there.
func TestServerlessReplicasAreAnError(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 1, Config{Replicas: 1})
	for name, err := range map[string]error{"Invalidate": f.guards[0].Invalidate(t.Context(), "k"), "SelfCheck": f.guards[0].SelfCheck(redistest.Patiently(t))} {
		if err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A request may have 1,999 arguments in this arena, 3,999 elsewhere.
func TestServerlessManyKeysAreManyRequests(t *testing.T) {
	t.Parallel()
	f := newFleet(t, onServerless(t), 1, Config{MaxLoads: off})
	keys := make([]string, expect.Samples(1100, 2100)) // more than a request may have
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	all := func(ctx context.Context, missing []string) (map[string]string, error) {
		found := make(map[string]string)
		for _, key := range missing {
			found[key] = "v"
		}
		return found, nil
	}
	found, err := GetMany(t.Context(), f.guards[0], keys, all)
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "found", len(found), len(keys))
	expect.Equal(t, "invalidated", f.guards[0].Invalidate(t.Context(), keys...), nil)
	expect.Equal(t, "tags", f.guards[0].InvalidateTags(t.Context(), keys...), nil)
	expect.Equal(t, "failures of Redis", f.events.redisErrors.Load(), 0)
}
