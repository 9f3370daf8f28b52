package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cacheguard/go/internal/flight"
	"github.com/cacheguard/go/rwlock"
)

// errDisabled is why a disabled Guard does not ask Redis.
var errDisabled = errors.New("the guard is disabled")

// refusing is the Limiter of a client that sends nothing.
type refusing struct{}

func (refusing) Allow() error       { return errDisabled }
func (refusing) ReportResult(error) {}

// newDisabledRedis returns the client of a disabled Guard. It opens no connection and starts no goroutine, and each request
// fails.
func newDisabledRedis() *redis.Client {
	return redis.NewClient(&redis.Options{
		Limiter: refusing{}, MaxRetries: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// disabled returns the Config of a disabled Guard: without the features that need Redis.
func (c Config) disabled() Config {
	c.FailClosed, c.Local, c.Verify, c.Replicas, c.WriteLock = false, LocalConfig{}, VerifyConfig{}, 0, nil
	return c
}

// process is what a disabled Guard has in place of Redis.
type process struct {
	clock     *flight.Clock // the Guard's; nil: it is not disabled
	overtaken atomic.Uint64 // the tick of the last invalidation
	locks     processLocks
}

// overtake ends the right of loads under way to answer calls that begin from now on.
func (p *process) overtake() { p.overtaken.Store(p.clock.Tick()) }

// goodBefore returns the tick before which a call must have begun so that a load without Redis, which began at the given tick, may
// answer it. Only a disabled Guard knows whether the load was overtaken: elsewhere, other processes may have done so. The tick
// comes before the check, so a call that begins after a later invalidation begins after the tick.
func (p *process) goodBefore(began uint64) uint64 {
	if p.clock == nil {
		return began
	}
	if now := p.clock.Tick(); p.overtaken.Load() <= began {
		return now
	}
	return began
}

// runInProcess is Update without Redis: the locks are those of this Guard.
func (u *update) runInProcess(ctx context.Context) (err error) {
	g := u.guard
	release, err := g.process.locks.acquire(ctx, g.life.Ending.Done(), u.keys)
	if errors.Is(err, ErrClosed) {
		return err
	}
	if err != nil {
		return fmt.Errorf("cacheguard: update %q: %w", u.keys, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := u.untilTimeout(func() {
		cancel(rwlock.ErrLeaseLost)
		release()
	})
	stopped := make(chan struct{})
	g.life.Go(func() { // owner: the Guard; stop: the end of the write; joined by Close
		select {
		case <-g.life.Ending.Done():
			cancel(rwlock.ErrClosed)
		case <-stopped:
		}
	})
	g.process.overtake()
	defer func() { // also when write panics
		close(stopped)
		g.process.overtake()
		err = errors.Join(err, stop())
		release()
	}()
	return u.callWrite(ctx)
}

// processLocks are exclusive locks by key. The zero value is ready to use.
type processLocks struct {
	mu   sync.Mutex
	keys map[string]*processLock
}

type processLock struct {
	held  chan struct{} // of size 1: full while somebody has the lock; waiters queue in their order
	users int           // who have it or wait
}

// acquire waits for the locks of the keys, which are sorted, until ctx or the Guard ends. Release may be called more than once.
func (l *processLocks) acquire(ctx context.Context, ending <-chan struct{}, keys []string) (release func(), err error) {
	taken := make([]string, 0, len(keys))
	release = sync.OnceFunc(func() {
		for _, key := range taken {
			l.leave(key, true)
		}
	})
	for _, key := range keys {
		select {
		case l.enter(key).held <- struct{}{}:
			taken = append(taken, key)
		case <-ctx.Done():
			l.leave(key, false)
		case <-ending:
			l.leave(key, false)
		}
		select { // also if it has the lock
		case <-ending:
			err = ErrClosed
		default:
			if ctx.Err() != nil {
				err = notWritten(ctx)
			}
		}
		if err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

func (l *processLocks) enter(key string) *processLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = make(map[string]*processLock)
	}
	k := l.keys[key]
	if k == nil {
		k = &processLock{held: make(chan struct{}, 1)}
		l.keys[key] = k
	}
	k.users++
	return k
}

func (l *processLocks) leave(key string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.keys[key]
	if held {
		<-k.held
	}
	if k.users--; k.users == 0 {
		delete(l.keys, key)
	}
}
