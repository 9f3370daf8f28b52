package cacheguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// replicated is a Guard that wants a replica's acknowledgement, on a primary that has one.
type replicated struct {
	*fleet
	primary, replica *redistest.Server
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	r := &replicated{primary: redistest.Start(t)}
	r.replica = redistest.StartReplica(t, r.primary)
	r.fleet = newFleetOn(t, r.primary.Client(t), Config{Replicas: 1, RedisTimeout: bearing},
		r.primary.Client(t, redistest.AsksAgain), r.primary.Client(t, redistest.AsksAgain)) // WAIT ends after half of its time
	r.events.quiet = true
	return r
}

// awaitStored waits until the replica has the value of a key, too.
func (r *replicated) awaitStored(key string) {
	r.t.Helper()
	redistest.Await(r.t, "the replica has the value", func() bool { return r.onReplica(key) })
}

func (r *replicated) onReplica(key string) bool {
	r.t.Helper()
	n, err := r.replica.Client(r.t).Exists(r.t.Context(), r.guards[0].keys.ValueKey(key)).Result()
	expect.Must(r.t, err)
	return n == 1
}

// The ways to invalidate a key k that has the tag "tag".
func waysToInvalidateAcknowledged() map[string]func(*Guard) error {
	ctx := context.Background()
	return map[string]func(*Guard) error{
		"Invalidate":     func(g *Guard) error { return g.Invalidate(ctx, "k") },
		"InvalidateTags": func(g *Guard) error { return g.InvalidateTags(ctx, "tag") },
		"InvalidateAll":  func(g *Guard) error { return g.InvalidateAll(ctx) },
	}
}

func TestAnInvalidationThatReturnsIsOnTheReplica(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	mustGet(t, r.guards[0], "k", tagged(1, "tag"))
	r.awaitStored("k")
	expect.Must(t, r.guards[0].Invalidate(t.Context(), "k"))
	expect.Equal(t, "the replica has the value", r.onReplica("k"), false)
}

func TestAnInvalidationThatNoReplicaHasIsAnErrorAndPendingUntilOneDoes(t *testing.T) {
	t.Parallel()
	expect.Each(t, waysToInvalidateAcknowledged(), func(t *testing.T, _ string, invalidate func(*Guard) error) {
		r := newReplicated(t)
		g, other := r.guards[0], r.guards[1]
		mustGet(t, g, "k", tagged(1, "tag"))
		r.primary.CutOff(r.replica)
		err := invalidate(g)
		expect.ErrorIs(t, err, ErrNotReplicated)
		expectRedisError(t, err, "invalidate", "")
		expect.Equal(t, "what another instance gets", mustGet(t, other, "k", tagged(2)), 2)
		r.replica.Resume()
		redistest.Await(t, "it is acknowledged", func() bool { return invalidate(g) == nil })
		redistest.Await(t, "nothing is pending", func() bool {
			return g.writes.Pending() == 0
		})
	})
}

func TestAnIntentThatNoReplicaHearsOfIsAnError(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	r.primary.CutOff(r.replica)
	defer r.replica.Resume()
	_, err := r.guards[0].Intend(t.Context(), Changes{Keys: []string{"k"}})
	expect.ErrorIs(t, err, ErrNotReplicated)
	expectRedisError(t, err, "intend", "")
}

func TestAnUpdateThatNoReplicaHearsOfDoesNotWrite(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	r.primary.CutOff(r.replica)
	defer r.replica.Resume()
	written := false
	err := r.guards[0].Update(t.Context(), "k", func(context.Context) error { written = true; return nil })
	expect.ErrorIs(t, err, ErrNotReplicated)
	expect.Equal(t, "it was written", written, false)
	expectRedisError(t, err, "update", "")
	locks := locksOf(t, r.guards[0])
	redistest.Await(t, "the lock is given back", func() bool {
		info, err := locks.Inspect(t.Context(), "k")
		return err == nil && info.Token == ""
	})
}

func TestSelfCheckFindsThatThereIsNoReplica(t *testing.T) {
	t.Parallel()
	alone := redistest.Start(t).Client(t, func(o *redis.Options) { o.ReadTimeout = time.Second })
	g := newGuard(t, alone, Config{Replicas: 1, RedisTimeout: bearing})
	expect.ErrorIs(t, g.SelfCheck(redistest.Patiently(t)), ErrNotReplicated)
	r := newReplicated(t)
	expect.ErrorIs(t, r.guards[0].SelfCheck(redistest.Patiently(t)), nil)
}

// A primary that froze, was cut off or was restarted takes itself for one until it is told otherwise.
func TestWhoHasNotHeardOfANewPrimaryReadsFromTheOldOne(t *testing.T) {
	t.Parallel()
	for _, local := range []LocalConfig{{}, {MaxEntries: 100, TTL: time.Hour, MaxLag: time.Second}} {
		expect.Beside(t, fmt.Sprintf("with a tier of %d", local.MaxEntries), func(t *testing.T) {
			ctx := context.Background()
			old := redistest.Start(t)
			successor := redistest.StartReplica(t, old)
			f := newFleetOn(t, successor.Client(t), Config{TTL: time.Hour, Local: local}, old.Client(t), successor.Client(t))
			read := func() string { return mustGet(t, f.guards[0], "k", returns("new")) }
			mustGet(t, f.guards[0], "k", returns("old"))
			redistest.Await(t, "the replica has it", func() bool { return f.exists(f.value("k")) })

			expect.Equal(t, "error", successor.Client(t).ReplicaOf(ctx, "no", "one").Err(), nil)
			mustInvalidate(t, f.guards[1], "k")
			expect.Equal(t, "read from the old primary", read(), "old")

			expect.Equal(t, "error", old.Client(t).ReplicaOf(ctx, "127.0.0.1", fmt.Sprint(successor.Port())).Err(), nil)
			redistest.Await(t, "what the new one has", func() bool { return read() == "new" })
		})
	}
}
