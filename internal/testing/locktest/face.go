package locktest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch/observe"
)

// Held is a lease of a lock on Redis.
type Held interface {
	comparable
	Context() context.Context
	Token() string
	TrustedUntil() time.Time
	Extend(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// OnRedis is what hands out such leases.
type OnRedis[L Held] interface {
	Lock(ctx context.Context, name string) (L, error)
	TryLock(ctx context.Context, name string) (L, error)
	Do(ctx context.Context, name string, f func(context.Context, L) error) error
	Close() error
}

// Face is a package of locks on Redis, of which one has a lock at a time. Its Lockers and leases are made of the same parts as those of the other
// packages, and keep the same promises.
type Face[K OnRedis[L], L Held] struct {
	Server *redistest.Server // that others use too
	Open   func(rdb *redis.Client, cfg config.Lock) (K, error)
	Lose   func(l L, cause error) // ends a lease
	Polls  bool                   // nobody queues in Redis
}

// RunFace runs the tests of a Face.
func RunFace[K OnRedis[L], L Held](t *testing.T, f Face[K, L]) {
	for name, test := range map[string]func(*stage[K, L]){
		"a nil Locker and a nil Lease say so":                             nils[K, L],
		"each field that is out of range is named":                        outOfRange[K, L],
		"what is to be done under no lock is refused before anybody asks": nothingToDo[K, L],
		"an ended context takes nothing":                                  endedContext[K, L],
		"hooks hear of those who ask and unlock":                          hooks[K, L],
		"a token names its instance":                                      instances[K, L],
		"a lease is renewed":                                              renewals[K, L],
		"a fixed lease ends unless it is extended":                        fixedLease[K, L],
		"MaxHold ends a lease that is renewed":                            maxHold[K, L],
		"a lost lease is not kept though nobody unlocks it":               notKept[K, L],
		"Close ends leases and waits and leaves nothing":                  closes[K, L],
		"an unlock of a lost lease beside Close is joined or says it":     closeRace[K, L],
		"an unlock of a lost lease after Close says why it was lost":      closedAfter[K, L],
		"a lease ends in time when Redis cannot be reached":               cutFromRedis[K, L],
		"Do says that the lease was lost whatever else failed":            lostUnderDo[K, L],
		"Do says that the lease was lost though Redis has it still":       overdue[K, L],
		"calls on a server that hangs return its error":                   hangs[K, L],
		"a call says that others have the lock when it was told so":       toldByRedis[K, L],
		"a call does not say so when Redis did not":                       untoldByRedis[K, L],
		"an unlock hands on when Redis is out of memory":                  outOfMemory[K, L],
		"a restart that forgets a lock ends its lease and waiters go on":  forgets[K, L],
		"a flush ends leases and queues waiters anew":                     flushed[K, L],
		"waiters of a process that may not subscribe poll":                noPush[K, L],
		"waiters are told of an unlock where scripts may not publish":     noPublish[K, L],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&stage[K, L]{t, f, "test-" + rand.Text()})
		})
	}
}

// stage is where a test of a Face works.
type stage[K OnRedis[L], L Held] struct {
	*testing.T
	face   Face[K, L]
	prefix string
}

// on returns a Locker on the client.
func (s *stage[K, L]) on(rdb *redis.Client, cfg config.Lock) K {
	s.Helper()
	cfg.Prefix = s.prefix
	config.SetDefault(&cfg.RedisTimeout, redistest.Patience)
	k, err := s.face.Open(rdb, cfg)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = k.Close() }) // always nil
	return k
}

func (s *stage[K, L]) open(cfg config.Lock) K {
	s.Helper()
	return s.on(s.face.Server.Client(s), cfg)
}

func (s *stage[K, L]) lock(k K, name string) L {
	s.Helper()
	l, err := k.Lock(patient(s), name)
	if err != nil {
		s.Fatal(err)
	}
	return l
}

func (s *stage[K, L]) unlock(l L) {
	s.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		s.Error(err)
	}
}

// behind is a Locker that another waits for.
func (s *stage[K, L]) behind(k, other K) *Waiter[L] {
	s.Helper()
	w := Wait(s, context.Background(), other.Lock, "x")
	if !s.face.Polls {
		s.await(k, 1)
	}
	return w
}

// await waits until that many wait for the lock in Redis.
func (s *stage[K, L]) await(k K, waiting int) {
	s.Helper()
	await(s, "so many wait", func() bool {
		l, err := s.seen(k).Inspect(context.Background(), "x")
		return err == nil && l.Waiting+l.WaitingReaders == waiting
	})
}

// seen is the Locker as package admin sees it.
func (s *stage[K, L]) seen(k K) observe.Locker {
	s.Helper()
	seen, known := observe.Look[observe.Locker](k)
	if !known {
		s.Fatalf("package admin does not know a %T", k)
	}
	return seen
}

// lost waits for the end of a lease, with its cause.
func (s *stage[K, L]) lost(l L) error {
	s.Helper()
	select {
	case <-l.Context().Done():
	case <-patient(s).Done():
		s.Fatal("the lease does not end")
	}
	return context.Cause(l.Context())
}
