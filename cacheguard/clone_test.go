package cacheguard

import (
	"context"
	"maps"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Each caller changes what it gets: of a load that it shares, of Redis, of the local tier, and twice of one GetMany.
func TestWithCloneACallerMayChangeWhatItGot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{Local: LocalConfig{MaxEntries: 100}}).listening()
	db := newSource("")
	c := newCaches(t, f, CacheConfig[int, map[string]int]{
		Name: "thing", Clone: maps.Clone[map[string]int], Key: func(int) string { return "one" },
		Load: func(ctx context.Context, _ int) (map[string]int, error) {
			_, err := db.load(ctx)
			return map[string]int{"n": 1}, err
		},
	})[0]
	change := func(how string, v map[string]int, err error) {
		expect.Must(t, err)
		expect.Equal(t, how, v["n"], 1)
		v["n"] = 2
	}
	replies := make(chan reply[map[string]int], 2)
	get := func() { // owner: the test; ends with Get; joined by receiving
		v, err := c.Get(ctx, 1)
		replies <- reply[map[string]int]{v, err}
	}
	go get()
	<-db.begun
	go get()
	redistest.Await(t, "two callers share the load", func() bool { return f.guards[0].flights.Count(nil).Callers == 2 })
	close(db.release)
	for range 2 {
		r := <-replies
		change("shared", r.value, r.err)
	}
	f.stored()
	for range 3 {
		v, err := c.Get(ctx, 1)
		change("again", v, err)
		v, _, err = c.Peek(ctx, 1)
		change("looked at", v, err)
		many, err := c.GetMany(ctx, []int{1, 2}) // which are the same thing
		change("one of many", many[1], err)
		change("another", many[2], err)
	}
	redistest.Await(t, "the local tier answers", func() bool {
		v, how, err := c.ask(ctx, 1)
		change(string(how), v, err)
		return how == Local
	})
	expect.Equal(t, "loads", db.loads.Load(), 1)
}
