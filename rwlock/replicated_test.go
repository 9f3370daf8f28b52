package rwlock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// replicated is a fleet of one whose locks a replica has to acknowledge, and a Locker that looks at the replica.
func replicated(t *testing.T, cfg Config) (f *fleet, primary, replica *redistest.Server) {
	t.Helper()
	primary = redistest.Start(t)
	replica = redistest.StartReplica(t, primary)
	cfg.Replicas, cfg.RedisTimeout = 1, 20*time.Second
	f = &fleet{t: t, prefix: "test-replicated", redis: primary.Client(t)}
	f.join(primary.Client(t, func(o *redis.Options) { o.ReadTimeout = 3 * time.Second }), cfg) // WAIT ends after half of it
	return f, primary, replica
}

// at inspects a lock at the replica.
func at(t *testing.T, replica *redistest.Server, name string) (writers, readers int64) {
	t.Helper()
	lock := "test-replicated:{" + name + "}:rw"
	rdb := replica.Client(t)
	if token, _ := rdb.HGet(t.Context(), lock, "writer").Result(); token != "" { // without one: empty
		writers = 1
	}
	readers, err := rdb.ZCard(t.Context(), lock+":readers").Result()
	if err != nil {
		t.Fatal(err)
	}
	return writers, readers
}

func TestAReplicaHasALockHoweverItIsHeld(t *testing.T) {
	t.Parallel()
	f, _, replica := replicated(t, Config{TTL: time.Minute})
	f.listening()
	k := f.lockers[0]
	expectAt := func(writers, readers int64) {
		t.Helper()
		w, r := at(t, replica, "x")
		expect.Equal(t, "writers at the replica", w, writers)
		expect.Equal(t, "readers at the replica", r, readers)
	}
	l := must(t, k, (*Locker).RLock, "x")
	expectAt(0, 1)
	if err := l.TryUpgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectAt(1, 0)
	reader := wait(t, k, (*Locker).RLock, "x")
	f.awaitWaiting("x", 0, 1)
	unlock(t, l)
	l = reader.Got()
	expectAt(0, 1)
	writer := wait(t, k, (*Locker).Lock, "x")
	f.awaitWaiting("x", 1, 0)
	unlock(t, l)
	l = writer.Got()
	expectAt(1, 0)
	unlock(t, l)
}

func TestALockThatNoReplicaHasIsGivenBack(t *testing.T) {
	t.Parallel()
	f, primary, replica := replicated(t, Config{TTL: time.Minute})
	k := f.lockers[0]
	reader := must(t, k, (*Locker).RLock, "held")
	primary.CutOff(replica)
	for _, ask := range []take{(*Locker).Lock, (*Locker).TryLock, (*Locker).RLock, (*Locker).TryRLock} {
		_, err := ask(k, context.Background(), "x")
		expect.ErrorIs(t, err, ErrNotReplicated)
		redistest.Await(t, "the lock is free", func() bool { return f.info("x").Token == "" && f.info("x").Readers == 0 })
	}
	expect.ErrorIs(t, reader.TryUpgrade(context.Background()), ErrNotReplicated)
	expect.Equal(t, "it counts as a writer", reader.Writes(), false)
	expect.ErrorIs(t, reader.Extend(context.Background()), ErrNotReplicated)
	replica.Resume()
	redistest.Await(t, "the upgrade is acknowledged", func() bool { return reader.TryUpgrade(context.Background()) == nil })
	unlock(t, reader)
}

func TestALeaseEndsWhoseRenewalsNoReplicaHas(t *testing.T) {
	t.Parallel()
	f, primary, replica := replicated(t, Config{TTL: 6 * time.Second})
	l := must(t, f.lockers[0], (*Locker).RLock, "x")
	primary.CutOff(replica)
	defer replica.Resume()
	<-l.Context().Done()
	expect.ErrorIs(t, context.Cause(l.Context()), ErrLeaseLost)
}
