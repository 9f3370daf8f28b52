package mutex

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// replicated is a fleet whose locks a replica has to acknowledge.
func replicated(t *testing.T, cfg Config) (f *fleet, primary, replica *redistest.Server) {
	t.Helper()
	primary = redistest.Start(t)
	replica = redistest.StartReplica(t, primary)
	cfg.Replicas, cfg.RedisTimeout = 1, 20*time.Second
	if cfg.TTL == 0 {
		cfg.TTL = time.Minute
	}
	return newFleetOn(t, primary.Client(t), cfg, primary.Client(t, redistest.AsksAgain), primary.Client(t, redistest.AsksAgain)), primary, replica
}

func tokenAt(t *testing.T, s *redistest.Server, key string) string {
	t.Helper()
	token, _ := s.Client(t).HGet(t.Context(), key, "token").Result() // without one: empty
	return token
}

// A lock is granted by an answer, by a message, or by another caller of the process.
func TestAReplicaHasALockHoweverItWasGranted(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		f, _, replica := replicated(t, cfg)
		f.listening()
		l := f.lock(0, "x")
		expect.Equal(t, "the token at the replica", tokenAt(t, replica, f.key("x")), l.Token())
		for _, i := range []int{0, 1} { // of the same process, and of another
			next := f.ask(patient(t), i, "x")
			if i == 0 && !cfg.Fair {
				f.awaitLine(0, "x", 1)
			} else {
				f.awaitWaiters("x", 1)
			}
			f.unlock(l)
			l = next.Got()
			expect.Equal(t, "the token at the replica", tokenAt(t, replica, f.key("x")), l.Token())
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		f.unlock(l)
	})
}

func TestALockThatNoReplicaHasIsGivenBack(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		f, primary, replica := replicated(t, cfg)
		held := f.lock(0, "held")
		primary.CutOff(replica)
		for _, ask := range []func(context.Context, string) (*Lease, error){f.lockers[0].Lock, f.lockers[0].TryLock} {
			_, err := ask(patient(t), "x")
			expect.ErrorIs(t, err, ErrNotReplicated)
			redistest.Await(t, "the lock is free", func() bool { return tokenAt(t, primary, f.key("x")) == "" })
		}
		until := held.TrustedUntil()
		expect.ErrorIs(t, held.Extend(patient(t)), ErrNotReplicated)
		expect.Equal(t, "an extension that no replica has is trusted", held.TrustedUntil(), until)
		replica.Resume()
		redistest.Await(t, "a lock is granted", func() bool {
			l, err := f.lockers[1].TryLock(patient(t), "x")
			return err == nil && l.Unlock(t.Context()) == nil
		})
		f.unlock(held)
	})
}

// A failover forgets renewals that no replica has, so a lease with no other renewals ends.
func TestALeaseEndsWhoseRenewalsNoReplicaHas(t *testing.T) {
	t.Parallel()
	f, primary, replica := replicated(t, Config{TTL: 3 * time.Second})
	l := f.lock(0, "x")
	primary.CutOff(replica)
	defer replica.Resume()
	cause(t, l, ErrLeaseLost)
}

func TestAQuorumHasNoReplicas(t *testing.T) {
	t.Parallel()
	if _, err := NewQuorum([]Redis{shared.Client(t)}, Config{Replicas: 1}); err == nil {
		t.Error("it is accepted")
	}
}
