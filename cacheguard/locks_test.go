package cacheguard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

// These tests are about the locks of all packages on Redis: what is held is kept, and given up, whatever Redis answers to a request.

// held is a lease of any of them.
type held interface {
	Context() context.Context
	TrustedUntil() time.Time
	Extend(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// take takes the lock of a name.
type take func(ctx context.Context, name string) (held, error)

const (
	ttl     = 10 * time.Second // a machine whose tests share two processors may stand still for half of it
	bearing = redistest.Patience
)

// kinds open a locker on clients, of which only a Quorum uses more than one.
var kinds = map[string]func(t *testing.T, clients []mutex.Redis) take{
	"mutex":         ofMutex(mutex.Config{}),
	"mutex, fair":   ofMutex(mutex.Config{Fair: true}),
	"mutex, parked": ofMutex(mutex.Config{MinHold: 2 * ttl}),
	"mutex, with an owner": func(t *testing.T, clients []mutex.Redis) take {
		lock := ofMutex(mutex.Config{})(t, clients)
		return func(ctx context.Context, name string) (held, error) {
			ctx = mutex.WithOwner(ctx)
			outer, err := lock(ctx, name)
			if err != nil {
				return nil, err
			}
			inner, err := lock(ctx, name)
			if err != nil {
				return nil, errors.Join(err, outer.Unlock(ctx))
			}
			return both{outer, inner}, nil
		}
	},
	"Quorum": func(t *testing.T, clients []mutex.Redis) take {
		q, err := mutex.NewQuorum(clients, mutex.Config{TTL: ttl, RedisTimeout: bearing})
		return locks(t, q, err, q.Lock)
	},
	"rwlock, writing": ofRWLock((*rwlock.Locker).Lock),
	"rwlock, reading": ofRWLock((*rwlock.Locker).RLock),
	"rwlock, changing": func(t *testing.T, clients []mutex.Redis) take {
		lock := ofRWLock((*rwlock.Locker).Lock)(t, clients)
		return func(ctx context.Context, name string) (held, error) {
			l, err := lock(ctx, name)
			if err != nil {
				return nil, err
			}
			return changing{l.(*rwlock.Lease)}, nil
		}
	},
	"semaphore": func(t *testing.T, clients []mutex.Redis) take {
		k, err := semaphore.New(clients[0], semaphore.Config{TTL: ttl, RedisTimeout: bearing, Permits: 1})
		return locks(t, k, err, k.Lock)
	},
}

func ofMutex(cfg mutex.Config) func(*testing.T, []mutex.Redis) take {
	cfg.TTL, cfg.RedisTimeout = ttl, bearing
	return func(t *testing.T, clients []mutex.Redis) take {
		k, err := mutex.New(clients[0], cfg)
		return locks(t, k, err, k.Lock)
	}
}

func ofRWLock(lock func(*rwlock.Locker, context.Context, string) (*rwlock.Lease, error)) func(*testing.T, []mutex.Redis) take {
	return func(t *testing.T, clients []mutex.Redis) take {
		k, err := rwlock.New(clients[0], rwlock.Config{TTL: ttl, RedisTimeout: bearing})
		return locks(t, k, err, func(ctx context.Context, name string) (*rwlock.Lease, error) { return lock(k, ctx, name) })
	}
}

func locks[L held](t *testing.T, k interface{ Close() error }, err error, lock func(context.Context, string) (L, error)) take {
	t.Helper()
	expect.Must(t, err)
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return func(ctx context.Context, name string) (held, error) {
		l, err := lock(ctx, name)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
}

// both is a lock that its owner holds twice.
type both struct{ held, inner held }

func (b both) Context() context.Context { return b.held.Context() }
func (b both) TrustedUntil() time.Time  { return b.held.TrustedUntil() }
func (b both) Extend(ctx context.Context) error {
	return errors.Join(b.held.Extend(ctx), b.inner.Extend(ctx))
}
func (b both) Unlock(ctx context.Context) error {
	return errors.Join(b.inner.Unlock(ctx), b.held.Unlock(ctx))
}

// changing is a writer who becomes a reader, and a writer again.
type changing struct{ *rwlock.Lease }

func (c changing) Extend(ctx context.Context) error {
	if err := c.Downgrade(ctx); err != nil {
		return err
	}
	if err := c.TryUpgrade(ctx); err != nil && !errors.Is(err, rwlock.ErrNotAcquired) { // a writer waits
		return err
	}
	return c.Lease.Extend(ctx)
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), bearing)
	t.Cleanup(cancel)
	return ctx
}

func TestWhileRedisIsFullWhatIsHeldIsKeptAndGivenUp(t *testing.T) {
	t.Parallel()
	expect.Each(t, kinds, func(t *testing.T, name string, open func(t *testing.T, clients []mutex.Redis) take) {
		var servers []*redis.Client
		var ours, theirs []mutex.Redis
		for range 3 {
			s := redistest.Start(t)
			servers, ours, theirs = append(servers, s.Client(t)), append(ours, s.Client(t)), append(theirs, s.Client(t))
			if !strings.Contains(name, "Quorum") {
				break
			}
		}
		full := func(limit string) {
			t.Helper()
			for _, s := range servers {
				expect.Must(t, s.ConfigSet(t.Context(), "maxmemory", limit).Err())
			}
		}
		lock, other := open(t, ours), open(t, theirs)
		l, err := lock(patient(t), "k")
		expect.Must(t, err)
		next := make(chan error, 1)
		queued, granted := queuesBehind(t, servers[0], name), held(nil)
		go func() { // owner: the test; ends with the Lock; joined below
			var err error
			granted, err = other(patient(t), "k")
			next <- err
		}()
		queued()
		full("1")
		began := l.TrustedUntil()
		redistest.Await(t, "the lease has outlived its TTL", func() bool { return l.TrustedUntil().After(began.Add(ttl)) || l.Context().Err() != nil })
		expect.Equal(t, "cause", context.Cause(l.Context()), nil)
		expect.Equal(t, "Extend", l.Extend(t.Context()), nil)
		if !strings.Contains(name, "reading") {
			expect.Equal(t, "somebody has the lock beside it, or waits no more", len(next), 0)
		}
		expect.Equal(t, "Unlock", l.Unlock(t.Context()), nil)
		if strings.Contains(name, "Quorum") { // it has no queue: a lock is taken anew, for which there is no room
			full("0")
		}
		expect.Must(t, <-next)
		expect.Equal(t, "its Unlock", granted.Unlock(t.Context()), nil)
		full("0")
	})
}

// queuesBehind returns what waits until one more than now waits for the lock of the tests.
func queuesBehind(t *testing.T, rdb *redis.Client, kind string) func() {
	if strings.Contains(kind, "Quorum") || strings.Contains(kind, "reading") {
		return func() {}
	}
	return func() {
		redistest.Await(t, "somebody waits", func() bool {
			for _, key := range rdb.Keys(t.Context(), "*").Val() {
				for _, field := range rdb.HKeys(t.Context(), key).Val() { // none of what is no hash
					if strings.HasPrefix(field, "waiter:") {
						return true
					}
				}
			}
			return false
		})
	}
}

// errs are what a Redis says that cannot serve just now.
var errs = []string{
	"OOM command not allowed when used memory > 'maxmemory'.", "READONLY You can't write against a read only replica.",
	"NOREPLICAS Not enough good replicas to write.", "MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist on disk.",
	"BUSY Redis is busy running a script.", "LOADING Redis is loading the dataset in memory",
}

func TestWhateverRedisAnswersAtAnyStepOfALockItIsHeldOrSaysSoAndIsGivenUp(t *testing.T) {
	t.Parallel()
	expect.Each(t, kinds, func(t *testing.T, name string, open func(t *testing.T, clients []mutex.Redis) take) {
		p := redistest.StartProxy(t, redistest.Start(t).Addr())
		lock := open(t, []mutex.Redis{p.Client(t)})
		run(t, lock, "known") // the server knows the scripts from here on
		step := 0
		for reached := true; reached; step++ { // the request that fails, until there are no more
			reached = false
			for _, message := range errs {
				at := 0 // guarded by the proxy
				rule := p.On(func(args []string) bool {
					if args[0] == "evalsha" {
						at++
					}
					return args[0] == "evalsha" && at == step+1
				}, redistest.ReplyError(message)).Times(1)
				of := "k"
				if strings.Contains(name, "parked") {
					of = rand.Text() // nobody has the lock of a name for a while
				}
				failed := run(t, lock, of)
				reached = reached || rule.Count() > 0
				rule.Remove()
				for what, err := range failed {
					if !strings.Contains(err.Error(), message) || what == "Unlock" {
						t.Errorf("%s, when request %d is answered %s: %v", what, step+1, message, err)
					}
				}
			}
		}
		if step < 4 { // to take it, to renew it, to give it up; and none
			t.Errorf("%d requests", step)
		}
	})
}

// run takes the lock, extends the lease, and gives it up. It repeats what fails, and returns the errors.
func run(t *testing.T, lock take, name string) (failed map[string]error) {
	t.Helper()
	failed = make(map[string]error)
	l, err := lock(patient(t), name)
	if err != nil {
		failed["Lock"] = err
		if l, err = lock(patient(t), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Extend(t.Context()); err != nil {
		failed["Extend"] = err
		expect.Equal(t, "Extend, again", l.Extend(t.Context()), nil)
	}
	expect.Equal(t, "cause", context.Cause(l.Context()), nil)
	if err := l.Unlock(t.Context()); err != nil {
		failed["Unlock"] = err
	}
	return failed
}

func TestOneThatWaitsGetsItsTurnThoughTheKeyOfTheLockIsDeleted(t *testing.T) {
	t.Parallel()
	for name, open := range kinds {
		if strings.Contains(name, "Quorum") || strings.Contains(name, "reading") || strings.Contains(name, "parked") {
			continue // nobody queues, or nobody can have the lock again at once
		}
		expect.Beside(t, name, func(t *testing.T) {
			s := redistest.Start(t)
			rdb := s.Client(t)
			lock, other := open(t, []mutex.Redis{s.Client(t)}), open(t, []mutex.Redis{s.Client(t)})
			take := func(lock take) held {
				l, err := lock(patient(t), "k")
				expect.ErrorIs(t, err)
				return l
			}
			l, queued, next := take(lock), queuesBehind(t, rdb, name), make(chan held, 1)
			go func() { next <- take(other) }() // owner: the test; ends with the Lock; joined below
			queued()
			for _, key := range rdb.Keys(t.Context(), "*").Val() {
				if rdb.Type(t.Context(), key).Val() == "hash" {
					expect.Equal(t, "deleted", rdb.Del(t.Context(), key).Val(), int64(1))
				}
			}
			_ = l.Unlock(t.Context()) // it was lost
			again := make(chan held, 1)
			takeAgain := func() { again <- take(lock) }
			go takeAgain() // owner: the test; ends with the Lock; joined below
			select {
			case l = <-next: // it has asked again already
			case l = <-again:
				queued()
				expect.Equal(t, "Unlock", l.Unlock(t.Context()), nil)
				go takeAgain() // as above
				select {
				case l = <-next:
				case l = <-again:
					t.Error("the first had the lock again before the one that waited")
				}
			}
			_ = l.Unlock(t.Context()) // two may hold what was deleted
			select {
			case l = <-next:
			case l = <-again:
			}
			_ = l.Unlock(t.Context()) // as above
		})
	}
}
