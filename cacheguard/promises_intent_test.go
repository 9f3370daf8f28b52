package cacheguard

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func mustIntend(t *testing.T, g *Guard, c Changes) *Intent {
	t.Helper()
	in, err := g.Intend(context.Background(), changesOn(g, c))
	expect.Must(t, err)
	return in
}

func changesOn(g *Guard, c Changes) Changes { return Changes{Keys: keysOn(g, c.Keys), Tags: c.Tags} }

func mustDone(t *testing.T, in *Intent) {
	t.Helper()
	expect.Must(t, in.Done(context.Background()))
}

// Until it is done, everything goes on as before.
func promiseIntent(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing, LeaseTTL: time.Minute})
	keys := numbered(0, 20)
	for i, key := range keys {
		mustGet(t, f.guards[i%2], key, returns("old"))
	}
	mustGet(t, f.guards[0], "list", tagged("old", "shoes"))
	mustGet(t, f.guards[0], "other", tagged("old", "hats"))
	in := mustIntend(t, f.guards[0], Changes{Keys: keys[:10], Tags: []string{"shoes"}})
	expect.Equal(t, "Also", in.Also(context.Background(), changesOn(f.guards[0], Changes{Keys: keys[5:15]})), nil)
	for _, key := range append([]string{"list", "other"}, keys...) {
		expect.Equal(t, key+", while it stands", mustGet(t, f.guards[1], key, unwanted[string](t)), "old")
	}
	expect.Equal(t, "a miss", mustGet(t, f.guards[1], "new list", tagged("old", "shoes")), "old")
	expect.Equal(t, "a hit", mustGet(t, f.guards[0], "new list", unwanted[string](t)), "old")
	mustDone(t, in)
	for i, key := range append([]string{"list", "new list"}, keys...) {
		if i < 17 {
			expect.Equal(t, key+", afterwards", mustGet(t, f.guards[i%2], key, tagged("new", "shoes")), "new")
		} else {
			expect.Equal(t, key+", which was not named", mustGet(t, f.guards[i%2], key, unwanted[string](t)), "old")
		}
	}
	expect.Equal(t, "of another tag", mustGet(t, f.guards[1], "other", unwanted[string](t)), "old")
	for _, key := range []string{"list", keys[0]} {
		expect.Equal(t, key+", stored", mustGet(t, f.guards[1], key, unwanted[string](t)), "new")
	}
	mustDone(t, in) // nothing more
	expect.Equal(t, "once more", mustGet(t, f.guards[1], "list", unwanted[string](t)), "new")
}

func promiseIntentDuringLoad(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing, LeaseTTL: time.Minute})
	for _, before := range []bool{true, false} { // the intent comes before the load begins, or after
		for _, c := range []Changes{{Keys: []string{"k"}}, {Tags: []string{"shoes"}}} {
			db := newSource("old")
			var in *Intent
			if before {
				in = mustIntend(t, f.guards[1], c)
			}
			loading := async(f.guards[0], "k", db.loadTagged("shoes"))
			<-db.begun
			if !before {
				in = mustIntend(t, f.guards[1], c)
			}
			db.value.Store("new")
			mustDone(t, in)
			close(db.release)
			want(t, loading, "old") // it began before the end of the intent
			f.stored()
			for _, g := range f.guards {
				expect.Equal(t, "afterwards", mustGet(t, g, "k", db.loadTagged("shoes")), "new")
			}
			mustInvalidate(t, f.guards[0], "k")
		}
	}
}

// The intent of a process that dies without a word: it is not renewed, and nobody ends it.
func promiseIntentExpires(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{LeaseTTL: brisk})
	ctx := context.Background()
	mustGet(t, f.guards[1], "list", tagged("old", "shoes"))
	mustGet(t, f.guards[1], "cached", returns("old"))
	slow := newSource("old")
	loading, tagging := async(f.guards[1], "loading", slow.load), async(f.guards[1], "tagging", slow.loadTagged("shoes"))
	<-slow.begun
	<-slow.begun
	for stands := false; !stands; { // if the machine stood still, these are loads of after the intent, and old to stay
		mustInvalidate(t, f.guards[0], "stored", "listed")
		began := time.Now()
		in := mustIntend(t, f.guards[0], Changes{Keys: []string{"cached", "stored", "loading"}, Tags: []string{"shoes"}})
		in.kept.Stop()
		mustGet(t, f.guards[1], "stored", returns("old"))
		mustGet(t, f.guards[1], "listed", tagged("old", "shoes"))
		stands = time.Since(began) < f.guards[0].keys.IntentTTL()
	}
	for _, key := range []string{"cached", "stored", "list", "listed"} {
		redistest.Await(t, key+" is loaded again", func() bool {
			v, err := getOn(ctx, f.guards[1], key, tagged("new", "shoes"))
			return err == nil && v == "new"
		})
	}
	redistest.Await(t, "no intent stands", func() bool {
		return !slices.ContainsFunc(f.matching(":*:until*"), func(key string) bool {
			last, err := f.redis.ZRevRangeWithScores(ctx, key, 0, 0).Result()
			return err != nil || len(last) > 0 && int64(last[0].Score) >= time.Now().UnixMilli()
		})
	})
	slow.value.Store("new") // for loads that begin now
	close(slow.release)
	want(t, loading, "old")
	want(t, tagging, "old")
	f.stored()
	expect.Equal(t, "of a load from before", mustGet(t, f.guards[0], "loading", returns("new")), "new")
	expect.Equal(t, "of one with the tag", mustGet(t, f.guards[0], "tagging", tagged("new", "shoes")), "new")
	for _, key := range []string{"cached", "stored", "list", "listed", "loading", "tagging"} {
		redistest.Await(t, key+" is stored to stay", func() bool { // the tag's intent may have ended after the key's
			loaded := false
			v := mustGet(t, f.guards[0], key, func(context.Context) (string, error) {
				loaded = true
				return "new", nil
			})
			expect.Equal(t, key, v, "new")
			return !loaded
		})
	}
}

func promiseAlso(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing, LeaseTTL: time.Minute})
	g := f.guards[0]
	for _, key := range []string{"k", "j"} {
		mustGet(t, f.guards[1], key, returns("old"))
	}
	mustGet(t, f.guards[1], "list", tagged("old", "shoes"))
	err := g.Update(context.Background(), keyOn(g, "k"), func(ctx context.Context) error {
		err := Also(ctx, changesOn(g, Changes{Keys: []string{"j", "k"}, Tags: []string{"shoes"}}))
		expect.Equal(t, "nobody waits", mustGet(t, f.guards[1], "list", unwanted[string](t)), "old")
		return err
	})
	expect.Equal(t, "error", err, nil)
	for _, key := range []string{"k", "j", "list"} {
		expect.Equal(t, key, mustGet(t, f.guards[1], key, tagged("new", "shoes")), "new")
	}
}
