package cacheguard

import (
	"context"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestNewCacheRefusesAVersionThatIsNone(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{}).guards[0]
	load := func(context.Context, int) (string, error) { return "", nil }
	for _, version := range []int{-1, maxVersion + 1, 20261122} {
		expectField(t, g, CacheConfig[int, string]{Name: "n", Load: load, Version: version}, "Version")
	}
	_, err := NewCache(g, CacheConfig[int, string]{Name: "an", Load: load, Version: maxVersion})
	expect.ErrorIs(t, err, nil)
	expectField(t, g, CacheConfig[int, string]{Name: "an", Load: load, Version: 3}, "Version") // the Guard has another one
}

func TestTheKeysOfVersionSlotsAreThoseThatInvalidationsRemove(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{})
	keys := []string{}
	for _, valueKey := range protocol.AllVersionSlots(f.value("a}:v1")) { // a key with braces
		keys = append(keys, valueKey, protocol.LeaseKey(valueKey))
	}
	expect.Equal(t, "keys", len(keys), 10)
	for _, key := range keys {
		expect.ErrorIs(t, f.redis.Set(ctx, key, "x", 0).Err(), nil)
	}
	others := f.value("a")
	for _, key := range []string{others, others + ":v1"} {
		expect.ErrorIs(t, f.redis.Set(ctx, key, "x", 0).Err(), nil)
	}
	mustInvalidate(t, f.guards[0], "a}:v1")
	n, err := f.redis.Exists(ctx, keys...).Result()
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "left", n, 0)
	n, err = f.redis.Exists(ctx, others, others+":v1").Result()
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "another key's", n, 2)
}

func TestInspectShowsTheEntriesOfAllVersions(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 3, steady).listening()
	all := rollout(t, f, newRow("v").load)
	all[1].expect(f, 1, "v")
	i := mustInspect(t, f.guards[0], thingKey)
	expect.Equal(t, "without a version", i.State, EntryMissing)
	expect.Equal(t, "versions", len(i.Versions), 1)
	expect.Equal(t, "version", i.Versions[0].Version, 1)
	expect.Equal(t, "state", i.Versions[0].State, EntryFresh)
	expect.Equal(t, "tags", strings.Join(i.Versions[0].Tags, " "), "things")
	text := i.String()
	expect.Equal(t, text, strings.HasPrefix(text, "\"thing:1\" without a version: missing\nversion 1: fresh\n  stored "), true)

	db := newSource("v")
	slow := newRelease(t, newGuardBeside(t, f, steady), 2, db.load, makeRenamed)
	all[0].expect(f, 1, "v")
	loading := slow.async()
	<-db.begun
	i = mustInspect(t, f.guards[0], thingKey)
	expect.Equal(t, "without a version", i.State, EntryFresh)
	expect.Equal(t, "versions", len(i.Versions), 2)
	expect.Equal(t, "the loading instance", i.Versions[1].Load.Instance, slow.guard.cfg.Instance)
	expect.Equal(t, "not the one without a version", i.Load == nil, true)
	close(db.release)
	want(t, loading, "v")
	awaitStored(t, slow.guard)

	expect.ErrorIs(t, all[1].all(), nil)
	for n, of := range mustInspect(t, f.guards[1], thingKey).Versions {
		expect.Equal(t, "version", of.Version, n+1)
		expect.Equal(t, "state", of.State, EntryRevoked)
	}
}
