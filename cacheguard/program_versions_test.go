package cacheguard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestVersionsSideBySideLoadOnceAndServeTheirOwn(t *testing.T) {
	t.Parallel()
	for name, build := range arenasOfVersions {
		for tier, cfg := range map[string]Config{"": steady, " with a local tier": steadyTier()} {
			expect.Beside(t, name+tier, func(t *testing.T) {
				f := newFleet(t, build(t), 3, cfg).listening()
				all := rollout(t, f, newRow("v").load)
				for range 5 {
					for _, r := range all {
						r.expect(f, 1, "v")
						found, err := r.getMany(1, 2)
						expect.Equal(t, "many", fmt.Sprint(found, err), "map[1:v 2:v] <nil>")
						f.stored()
					}
				}
				for _, r := range all {
					expect.Equal(t, "loads", r.loads.Load(), 2)
					ttl, err := f.redis.PTTL(context.Background(), r.value(1)).Result()
					expect.Equal(t, "has a TTL", err == nil && ttl > 0, true)
				}
				expect.Equal(t, "entries that somebody could not read", f.events.damaged.Load(), 0)
			})
		}
	}
}

func TestVersionsSideBySideRememberAbsenceForThemselves(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 3, steady)
	db := newRow("")
	all := rollout(t, f, db.orAbsent)
	for range 3 {
		for _, r := range all {
			_, err := r.get(1)
			expect.ErrorIs(t, err, ErrNotFound)
			f.stored()
		}
	}
	expect.Equal(t, "loads", fmt.Sprint(loadedSince(all)), "[1 1 1]")
	db.value.Store("v")
	expect.ErrorIs(t, all[2].invalidate(1), nil)
	for _, r := range all {
		r.expect(f, 1, "v")
	}
}

// invalidations by an instance of some version, or by one of a program that has no such Cache.
func waysToInvalidate(db *row) map[string]func(by *release, id int) error {
	ctx := context.Background()
	key := func(id int) string { return fmt.Sprint("thing:", id) }
	return map[string]func(*release, int) error{
		"Cache.Invalidate":    func(by *release, id int) error { return by.invalidate(id) },
		"Guard.Invalidate":    func(by *release, id int) error { return by.guard.Invalidate(ctx, key(id)) },
		"InvalidateTags":      func(by *release, _ int) error { return by.guard.InvalidateTags(ctx, "things") },
		"Cache.InvalidateAll": func(by *release, _ int) error { return by.all() },
		"Guard.InvalidateAll": func(by *release, _ int) error { return by.guard.InvalidateAll(ctx) },
		"Update":              func(by *release, id int) error { return by.guard.Update(ctx, key(id), db.write("new")) },
		"Put":                 func(by *release, id int) error { return by.put(id, db.saves("new")) },
		"a bypassing instance": func(by *release, id int) error {
			by.guard.Bypass(true)
			defer by.guard.Bypass(false)
			return by.invalidate(id)
		},
	}
}

func TestWhateverOneVersionInvalidatesIsInvalidatedForAll(t *testing.T) {
	t.Parallel()
	for name, build := range arenasOfVersions {
		for tier, cfg := range map[string]Config{"": steady, " with a local tier": steadyTier()} {
			expect.Beside(t, name+tier, func(t *testing.T) {
				f := newFleet(t, build(t), 4, cfg).listening()
				db := newRow("old")
				all := rollout(t, f, db.load)
				other := newRelease(t, f.guards[3], 3, db.load, makePlain) // gets nothing
				id := 0
				ways := waysToInvalidate(db)
				for _, way := range slices.Sorted(maps.Keys(ways)) {
					for n, by := range append(slices.Clone(all), other) {
						if id++; !expect.Drawn(3) {
							continue
						}
						invalidateAndExpect(f, db, all, id, n, way, func() error { return ways[way](by, id) })
					}
				}
			})
		}
	}
}

// invalidateAndExpect fills the cache of each release, makes the n-th invalidate the thing, and expects each to have the new one.
func invalidateAndExpect(f *fleet, db *row, all []*release, id, n int, way string, do func() error) {
	f.t.Helper()
	db.value.Store("old")
	for range 2 {
		for _, r := range all {
			r.expect(f, id, "old")
		}
	}
	loadedSince(all)
	db.value.Store("new")
	expect.ErrorIs(f.t, do(), nil)
	want := []int64{1, 1, 1}
	for i, r := range all {
		what := fmt.Sprintf("%s by %d has reached %d", way, n, i)
		if i != n && r.guard.local != nil { // by a message
			redistest.Await(f.t, what, func() bool {
				v, err := r.get(id)
				return err == nil && v == "new"
			})
		}
		r.expect(f, id, "new")
		if way == "Put" && i == n {
			want[i] = 0
		}
	}
	expect.Equal(f.t, way+": loads", fmt.Sprint(loadedSince(all)), fmt.Sprint(want))
}

func TestAStaleValueOfOneVersionEndsWithAnInvalidationByAnother(t *testing.T) {
	t.Parallel()
	cfg := steady
	cfg.TTL, cfg.StaleFor = time.Millisecond, time.Hour
	f := newFleet(t, standalone(t), 3, cfg)
	db := newRow("old")
	all := rollout(t, f, db.load)
	for range 20 {
		db.value.Store("old")
		expect.ErrorIs(t, all[2].invalidate(1), nil)
		for _, r := range all {
			r.expect(f, 1, "old")
		}
		db.value.Store("new")
		expect.ErrorIs(t, all[1].invalidate(1), nil)
		for _, r := range all {
			r.expect(f, 1, "new")
		}
	}
}

func TestAVersionThatIsRolledBackFindsItsEntriesAsCurrentAsItsSuccessorLeftThem(t *testing.T) {
	t.Parallel()
	for old := range 2 { // without a version, and version 1
		expect.Beside(t, fmt.Sprint("version ", old), func(t *testing.T) {
			f := newFleet(t, standalone(t), 3, steady)
			db := newRow("old")
			all := rollout(t, f, db.load)
			before, after := all[old], all[2]
			for id := range 2 {
				before.expect(f, id+1, "old")
				after.expect(f, id+1, "old")
			}
			expect.ErrorIs(t, after.put(1, db.saves("new")), nil)
			expect.ErrorIs(t, after.guard.Close(), nil)
			loadedSince(all)
			before.expect(f, 1, "new")
			before.expect(f, 2, "old") // its own entry: nobody has written that thing
			expect.Equal(t, "loads", fmt.Sprint(before.loads.Load(), after.loads.Load()), "1 0")
		})
	}
}

func TestVersionsThatAreFourApartDoNotServeOrReplaceEachOthersEntries(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 3, steady).listening()
	db := newRow("v")
	first := newRelease(t, f.guards[0], 1, db.orAbsent, makePriced)
	fifth := newRelease(t, f.guards[1], 5, db.orAbsent, makeRenamed)
	expect.Equal(t, "one slot", first.value(1), fifth.value(1))
	for range 3 {
		first.expect(f, 1, "v")
		fifth.expect(f, 1, "v")
	}
	expect.Equal(t, "loads", fmt.Sprint(first.loads.Load(), fifth.loads.Load()), "1 3")
	expect.Equal(t, "whose it is", f.entry("thing:1", first.value(1)).Version, 1)

	db.value.Store("")
	expect.ErrorIs(t, fifth.invalidate(1), nil)
	_, err := fifth.get(1)
	expect.ErrorIs(t, err, ErrNotFound)
	f.stored()
	expect.Equal(t, "absence is of a version, too", f.entry("thing:1", first.value(1)).Version, 5)
	db.value.Store("v")
	first.expect(f, 1, "v")
}

func TestAVersionThatWaitsForTheLoadOfOneFourApartLoadsForItself(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, steady).listening()
	db := newSource("v")
	first := newRelease(t, f.guards[0], 2, db.load, makePriced)
	fifth := newRelease(t, f.guards[1], 6, db.load, makeRenamed)
	loads := first.async()
	<-db.begun
	waits := fifth.async()
	f.awaitInboxes(protocol.LeaseKey(first.value(1)), 1)
	close(db.release)
	want(t, loads, "v")
	want(t, waits, "v")
	expect.Equal(t, "loads", db.loads.Load(), 2)
}

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
