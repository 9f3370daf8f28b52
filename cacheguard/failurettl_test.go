package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

var errDown = errors.New("database is down")

// down counts its loads, which all fail.
type down struct{ *source }

func (s down) load(ctx context.Context) (string, error) {
	_, _ = s.source.load(ctx)
	return "", errDown
}

func TestWithoutFailureTTLEachCallThatBeginsAfterAFailureLoads(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{FailureTTL: -1})
	db := down{newSource("")}
	close(db.release)
	for i := range 10 {
		_, err := Get(context.Background(), f.guards[i/5], "k", db.load) // the first ones at once
		expect.ErrorIs(t, err, errDown)
		if i >= 4 {
			f.stored()
		}
	}
	expect.Equal(t, "loads", db.loads.Load(), 10)
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns("v")), "v")
}

func TestWithoutFailureTTLAllThatWaitGetTheFailureOfTheOneLoad(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{FailureTTL: -1}).listening()
	db := down{newSource("")}
	replies := []<-chan reply[string]{async(f.guards[0], "k", db.load)}
	<-db.begun
	replies = append(replies, async(f.guards[0], "k", db.load), async(f.guards[1], "k", db.load))
	awaitCallers[string](f, 0, "k", 2)
	f.awaitRegistered("k", 1)
	close(db.release)
	for _, r := range replies {
		err := (<-r).err
		var remote *LoadError
		expect.Equal(t, "failed", errors.Is(err, errDown) || errors.As(err, &remote), true)
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

func TestACacheHasItsOwnFailureTTL(t *testing.T) {
	t.Parallel()
	const most = 3 * time.Millisecond
	f := newFleet(t, standalone(t), 1, Config{FailureTTL: -1})
	c := newCaches(t, f, CacheConfig[int, string]{
		Name: "thing", FailureTTL: most, Load: func(context.Context, int) (string, error) { return "", errDown },
	})[0]
	for range 5 {
		_, err := c.Get(context.Background(), 1)
		expect.ErrorIs(t, err, errDown)
		f.stored()
		ms, err := f.redis.HGet(context.Background(), f.lease("thing:1"), "length").Int()
		expect.Must(t, err)
		if ms < 1 || ms > int(most.Milliseconds()) {
			t.Errorf("the failure is remembered for %d ms", ms)
		}
	}
}
