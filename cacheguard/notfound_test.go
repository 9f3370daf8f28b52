package cacheguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// noSuch is an error for absence that has the key in its text.
type noSuch struct{ key string }

func (e noSuch) Error() string       { return "no such thing: " + e.key }
func (e noSuch) Is(other error) bool { _, is := other.(noSuch); return is }
func (noSuch) Of(key string) error   { return noSuch{key} }

func TestKeysWithoutACacheHaveTheErrorsOfTheConfig(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{NotFound: sql.ErrNoRows, ErrorCodec: statusCodec{}}).listening()
	db := newSource("")
	load := func(ctx context.Context) (string, error) {
		_, err := db.load(ctx)
		return "", errors.Join(err, fmt.Errorf("row 1: %w", &statusError{409}))
	}
	first := async(f.guards[0], "failing", load)
	<-db.begun
	second := async(f.guards[1], "failing", load)
	f.awaitRegistered("failing", 1)
	close(db.release)
	expect.Equal(t, "status where it failed", statusOf((<-first).err), 409)
	expect.Equal(t, "status elsewhere", statusOf((<-second).err), 409)

	absent := func(context.Context) (string, error) { return "", fmt.Errorf("row 2: %w", sql.ErrNoRows) }
	for i, g := range f.guards {
		for _, when := range []string{"first", "second"} {
			_, err := Get(ctx, g, "absent", absent)
			expect.Equal(t, fmt.Sprint("absence on instance ", i, ", ", when), err, sql.ErrNoRows)
			f.stored()
		}
	}
	expect.Equal(t, "loads of the absent", f.events.loads.Load(), 2)
	found, err := GetMany(ctx, f.guards[0], []string{"absent", "too"}, func(context.Context, []string) (map[string]string, error) {
		return nil, fmt.Errorf("rows: %w", sql.ErrNoRows)
	})
	expect.Equal(t, "many", fmt.Sprint(found, err), "map[] <nil>")

	c := newCaches(t, f, CacheConfig[int, string]{Name: "row", Load: func(ctx context.Context, _ int) (string, error) { return absent(ctx) }})[0]
	_, err = c.Get(ctx, 1)
	expect.Equal(t, "the default of a Cache", err, sql.ErrNoRows)
}

func TestAbsenceMayNameItsKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{})
	caches := newCaches(t, f, CacheConfig[int, string]{
		Name: "row", NotFound: noSuch{}, Load: func(context.Context, int) (string, error) { return "", noSuch{"some key"} },
	})
	for _, c := range caches {
		_, err := c.Get(ctx, 7)
		f.stored()
		expect.ErrorIs(t, err, noSuch{})
		expect.Equal(t, "text", err.Error(), "no such thing: row:7")
		_, _, err = c.Peek(ctx, 7)
		expect.Equal(t, "text of a Peek", err.Error(), "no such thing: row:7")
	}
	expect.Equal(t, "loads", f.events.loads.Load(), 1)
}
