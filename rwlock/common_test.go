package rwlock

import (
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/model"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The common cases of scripts run before the prelude. They do what the rest would do, whatever has happened to the lock.
func TestTheCommonCasesOfScriptsDoWhatTheRestDoes(t *testing.T) {
	t.Parallel()
	begin, acquiring, releasing := rw.Shortcuts()
	acquire := model.NewShortcut(begin, acquiring[0], acquiring[1])
	release := model.NewShortcut(begin, releasing[0], releasing[1])
	scripts := rw.Compile(model.Modelled)
	telling := []uint64{13, 16} // one of them finds each of the mistakes that are put into common cases
	for _, seed := range append(telling, model.Seeds(t, expect.Samples(2, 40))...) {
		newWalk(t, seed, scripts, acquire, release).Run(150)
		if t.Failed() {
			t.Fatalf("in the walk of MODEL_SEED=%d", seed)
		}
	}
	if few := expect.Samples(5, 50); acquire.Taken < few || release.Taken < few {
		t.Errorf("%d times a free lock, %d times a lone holder", acquire.Taken, release.Taken)
	}
}

func newWalk(t *testing.T, seed uint64, scripts *queue.Scripts, acquire, release *model.Shortcut) *model.Walk {
	t.Helper()
	rdb := shared.Client(t)
	l := rw.At(scripts, "{walk-"+rand.Text()+"}")
	w := &model.Walk{T: t, Redis: rdb, Rand: mrand.New(mrand.NewPCG(seed, 2)), Keys: l.Keys, Except: []string{"solo"}}
	w.Call = func() (script.Call, *model.Shortcut) {
		token, ttl := fmt.Sprint("t", w.Rand.IntN(4)), ms(1000+w.Rand.Int64N(3)*3000)
		now := rdb.HMGet(t.Context(), l.Keys[0], "writer", "fence").Val()
		if holder, _ := now[0].(string); holder != "" && w.Rand.IntN(2) == 0 {
			token = holder
		}
		text, _ := now[1].(string)
		fence, _ := strconv.ParseInt(text, 10, 64) // none: 0
		switch p := w.Rand.IntN(100); {
		case p < 40:
			m, wait := rw.Writing, queue.Grace(ttl)
			if w.Rand.IntN(5) < 2 {
				m = rw.Reading
			}
			if w.Rand.IntN(2) == 0 {
				wait = 0
			}
			return l.Asking(token, m.Arg(), ttl, wait, queue.Unlimited, "", 0), acquire
		case p < 85:
			return l.Releasing(token, fence, w.Rand.IntN(5) == 0), release
		case p < 90:
			return l.Renewing(token, ttl, fence), nil
		case p < 93:
			return toReader(l, token, ttl, fence), nil
		case p < 96:
			return toWriter(l, token, ttl, fence), nil
		case p < 98:
			return l.Revoking(fmt.Sprint(w.Rand.Int())), nil
		}
		return l.Beating(token, 0, queue.Grace(ttl)), nil
	}
	return w
}

func TestAFreeLockIsRefusedAndALoneOneGivenUpWhenRedisIsOutOfMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleet(t, func(tb testing.TB) client { return s.Client(tb) }, 1, Config{})
	memory := func(size string) {
		t.Helper()
		if err := f.redis.(*redis.Client).ConfigSet(t.Context(), "maxmemory", size).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"fresh", "known", "known"} {
		l := must(t, f.lockers[0], (*Locker).Lock, name)
		memory("1")
		unlock(t, l)
		if _, err := f.lockers[0].TryLock(t.Context(), name); err == nil || errors.Is(err, ErrNotAcquired) {
			t.Errorf("TryLock: %v", err)
		}
		memory("0")
		for _, key := range callerOf(l).Keys {
			if ttl := f.redis.PTTL(t.Context(), key).Val(); ttl == -1 {
				t.Errorf("%s has no TTL", key)
			}
		}
	}
	unlock(t, must(t, f.lockers[0], (*Locker).TryLock, "known"))
}

// EXISTS came later than the other rights.
func TestWithoutTheRightToEXISTSLocksWork(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	k := shopOn(t, s.Client(t, s.As(t, append(acl.RWLock.ACL("shop"), "-exists")...)))
	for range 3 {
		unlock(t, must(t, k, (*Locker).Lock, "a"))
	}
}

// Its context has ended, and with it what was done, so its holder must hear of that, whichever way the script takes.
func TestAnUnlockAfterTheLeaseSaysSoAlsoIfNobodyHasHadTheLockSince(t *testing.T) {
	t.Parallel()
	const ttl = brisk / 2
	f := newFleet(t, standalone(t), 2, Config{TTL: ttl, FixedLease: true})
	lock := func(of *Locker) (l *Lease) {
		t.Helper()
		redistest.Await(t, "a lock whose answer takes less than the lease, as on a busy machine not all do", func() bool {
			var err error
			if l, err = of.Lock(t.Context(), "a"); err != nil && !errors.Is(err, ErrLeaseLost) {
				t.Fatal(err)
			}
			return err == nil
		})
		return l
	}
	for range 3 {
		l := lock(f.lockers[0])
		<-l.Context().Done()
		asked := f.redis.Time(t.Context()).Val()
		redistest.Await(t, "it is over in Redis", func() bool { return f.redis.Time(t.Context()).Val().Sub(asked) > ttl })
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("nobody else has had it: %v", err)
		}

		l = lock(f.lockers[0])
		<-l.Context().Done()
		if err := lock(f.lockers[1]).Unlock(t.Context()); err != nil && !errors.Is(err, ErrLeaseLost) { // it has had it
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("somebody else has had it: %v", err)
		}
	}
}

func TestLeasesAndLockersAreLikeThoseOfAllLocks(t *testing.T) {
	t.Parallel()
	locktest.RunFace(t, locktest.Face[*Locker, *Lease]{
		Server: shared,
		Open: func(rdb *redis.Client, cfg config.Lock) (*Locker, error) {
			return New(rdb, Config{
				Prefix: cfg.Prefix, Instance: cfg.Instance, TTL: cfg.TTL, FixedLease: cfg.FixedLease, MaxHold: cfg.MaxHold,
				RedisTimeout: cfg.RedisTimeout, Hooks: Hooks(cfg.Hooks),
			})
		},
		Lose: func(l *Lease, cause error) { l.held.Lose(cause) },
	})
}
