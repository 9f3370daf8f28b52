package main

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

var update = flag.Bool("update", false, "write the outputs anew")

// outputs are what each command prints that people have written scripts for.
var outputs = map[string]result{
	"check": checked{Prefix: "shop", LockPrefix: "jobs", Findings: []finding{
		{Check: "version", Node: "a:6379", Result: ok, Detail: "redis 7.0.15, standalone"},
		{Check: "maxmemory-policy", Node: "a:6379", Result: warning, Detail: "allkeys-lru, maxmemory 1.00G: locks may be evicted"},
		{Check: "guard", Result: wrong, Detail: "NOPERM this user has no permissions to run the 'evalsha' command"},
	}},
	"invalidate": invalidated{Prefix: "shop", Keys: []string{"price:42", "tab\t"}, Tags: []string{"category:shoes"}, All: true, Missing: []string{"tab\t"}, Notes: []string{"no page shows it"}},
	"inspect": inspected{
		Prefix: "shop", Key: "price:42", State: "stale", Age: 62, KeptFor: 298, LoadTook: 0.031, Kind: "coded", Tags: []string{"category:shoes"}, Versions: []string{"5f0c"},
		Size: 99, Load: &shownHolder{"shop-1", 12, 4.2}, Waiting: 2, Writers: []shownHolder{}, Failure: &shownFailure{"no such table", 3, 0.4},
		text: "\"price:42\": stale\n  stored 1m2s ago, fresh for 0s, in Redis for 4m58s\n",
	},
	"inspectbypassed": inspected{Prefix: "shop", Key: "price:42", State: "missing", Writers: []shownHolder{}, Bypassed: 540.26, text: "\"price:42\": missing\n"},

	"bypass":  bypassed{Prefix: "shop", Seconds: 600, Notes: []string{"no page shows it"}},
	"bypass0": bypassed{Prefix: "shop"},
	"locks": shownLocks{Prefix: "jobs", Locks: []shownLock{
		{"import", "mutex", "shop-1", "ABC@shop-1", 1, 1795368776180281, 9500, 3, 0, nil},
		{"file", "rwlock", "", "", 2, 0, 1000, 1, 4, nil},
		{"reports", "semaphore", "", "", 2, 0, 1000, 7, 0, []shownPermit{{"shop-1", "DEF@shop-1", 1000}, {"", "GHI", 9500}}},
	}},
	"revoke": revoked{"import", "mutex", 1, nil},
	"stats": shownStats{Prefix: "shop", Listeners: 3, Nodes: []nodeStats{
		{"a:6379", "7.0.15", 1 << 20, 1 << 30, "noeviction", 1, 2, 3, 4, 5, ""},
		{"b:6379", "7.2.4", 3 << 20, 0, "allkeys-lru", 0, 0, 0, 1, 0, "NOPERM no pubsub"},
		{Node: "c:6379", Problem: "connection refused"},
	}},
	"feeds": shownFeeds{Feeds: []feed{
		{"shop-1", "shop", true, 0.0123, 0, 1 << 20, "", 0, 100, 200, 1, 3, 2, "", 7},
		{"shop-2", "shop", false, 0, 3 << 20, 1 << 20, "", 0, 0, 0, 0, 0, 7, "cdc/postgres: no \"rights\"", -1},
		{"shop-3", "shop", false, 0, 0, 1 << 30, "a transaction of pid 7 (role job)", 3600, 0, 0, 0, 0, 0, "", -1},
	}},
	"reports": shownReports{Reports: []report{
		{"shop-1", "shop", 20, 1, 2, 0.00051, 0.0072, 12.5, []looks{{1, 20, 2, 100_000}, {10, 20, 1, 50_000}, {60, 19, 0, 0}}, []oldValue{
			{"public.products", "product:42", "2026-11-22T03:00:00Z", 10, "its load began 12ms after the commit, took 3ms, and read an old row: from a replica that is behind?", []string{"5f0c"}},
		}},
		{"shop-2", "shop", 0, 0, 0, 0, 0, 0, []looks{{1, 0, 0, 0}}, []oldValue{}},
	}},
	"caughtup": caughtUp{"shop", 0.25},
	"sample":   sampled{"2026-11-22T03:00:00Z", "sampled", "product", 0, "", 0, "shop-1", 2104.5, 0.986, 20, 2, 1, 7, 1, nil},
	"sampled":  sampled{"2026-11-22T03:00:00Z", "sampled", "product", 3, "product:7", 2, "", 0, -1, 0, 0, 0, 0, 0, nil},
	"watch":    seen{"2026-11-22T03:00:00Z", "invalidated", "price:42", "price"},
}

func TestOutputsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	const file = "testdata/outputs.txtar"
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		for _, ending := range []string{".json", ".txt"} {
			all.WriteString("-- " + name + ending + " --\n")
			expect.ErrorIs(t, (&printer{to: &all, json: ending == ".json"}).print(outputs[name]))
		}
	}
	if *update {
		expect.ErrorIs(t, os.WriteFile(file, all.Bytes(), 0o644))
		return
	}
	was, err := os.ReadFile(file)
	expect.ErrorIs(t, err)
	want := strings.SplitAfter(string(was), "\n-- ")
	got := strings.SplitAfter(all.String(), "\n-- ")
	expect.Equal(t, "outputs", len(got), len(want))
	for i := range min(len(got), len(want)) {
		expect.Equal(t, strings.Fields(got[i])[0], got[i], want[i])
	}
}
