package mutex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/link"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Quorum hands out locks that are kept by a majority of independent Redis servers, so that they survive the loss of the
// others. It is safe for concurrent use. The algorithm is Redlock
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) with a second round, where a majority
// learns the fence: so fences grow, as any two majorities share a server. Its leases have the limits of all leases: see
// the package comment. There is no Inspect, Revoke, LockMany or SelfCheck across servers; use a Locker for one of them.
// Package admin shows what all of them say.
type Quorum struct {
	life     *lifecycle.Lender[*Lease]
	servers  []*link.Sender
	cfg      config.Lock
	majority int
}

// Without push, a Quorum polls while others have the lock. A random pause lets one of several get a majority.
const (
	shortestRetry = 10 * time.Millisecond
	longestRetry  = 200 * time.Millisecond
)

// NewQuorum returns a Quorum on independent servers, preferably 3 or 5. A cluster, or a primary with its replicas,
// counts as one. It does no I/O. It refuses Config.Fair, as there is no queue across servers, and Config.Replicas.
func NewQuorum(clients []Redis, cfg Config) (*Quorum, error) {
	problems := []error{cfg.common().Check(), cfg.check()}
	if len(clients) == 0 {
		problems = append(problems, errors.New("no clients"))
	}
	for i, rdb := range clients {
		if err := errors.Join(config.CheckClient(rdb), goredis.CheckOnePlace(rdb)); err != nil {
			problems = append(problems, fmt.Errorf("client %d: %w", i, err))
		} else if reflect.TypeOf(rdb).Comparable() && slices.Contains(clients[:i], rdb) {
			problems = append(problems, fmt.Errorf("client %d: is one of those before it", i))
		}
	}
	if cfg.Replicas > 0 {
		problems = append(problems, errors.New("Config.Replicas: the servers of a quorum are independent of one another"))
	}
	if cfg.Fair {
		problems = append(problems, errors.New("Config.Fair: a quorum has no queue"))
	}
	if cfg.MinHold > 0 {
		problems = append(problems, errors.New("Config.MinHold: a quorum has none"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("mutex: %w", err)
	}
	q := &Quorum{life: lifecycle.NewLender((*Lease).abort), cfg: cfg.common().WithDefaults(), majority: len(clients)/2 + 1}
	for _, rdb := range clients {
		q.servers = append(q.servers, link.NewSender(rdb, q.cfg.RedisTimeout, q.life.Life))
	}
	return q, nil
}

// Close is like Locker.Close.
func (q *Quorum) Close() error {
	if q == nil {
		return nil // NewQuorum failed: there is nothing to close
	}
	q.life.Close(ErrClosed)
	for _, server := range q.servers {
		server.Close()
	}
	return nil
}

func (q *Quorum) begin(name string) error {
	if q == nil {
		return errNilLocker
	}
	return lockErrors.Begin(q.life.Life, name)
}

// Lock is like Locker.Lock. It returns an error of Redis at once if no majority can be reached at all, or when none can
// be reached for longer than TTL during the wait.
func (q *Quorum) Lock(ctx context.Context, name string) (*Lease, error) {
	if q == nil {
		return nil, errNilLocker
	}
	asking := q.cfg.Hooks.Ask(ctx, "Lock", name)
	l, err := q.lock(ctx, name)
	asking.End(err)
	return l, err
}

func (q *Quorum) lock(ctx context.Context, name string) (l *Lease, err error) {
	var answered time.Time // when a majority said no
	for pause := shortestRetry; ; pause = min(2*pause, longestRetry) {
		asked := time.Now()
		l, err = q.try(ctx, name)
		if errors.Is(err, ErrNotAcquired) {
			answered = asked
		}
		if err == nil || time.Since(answered) > q.cfg.TTL || ctx.Err() != nil || q.life.Ending.Err() != nil {
			return l, err
		}
		q.life.Sleep(ctx, pause/2+rand.N(pause)) // if that is cut short, try says why
	}
}

// TryLock is like Locker.TryLock. But if several callers ask at the same time, each may get some of the servers and
// none a majority: then all are refused.
func (q *Quorum) TryLock(ctx context.Context, name string) (*Lease, error) {
	if q == nil {
		return nil, errNilLocker
	}
	asking := q.cfg.Hooks.Ask(ctx, "TryLock", name)
	l, err := q.try(ctx, name)
	asking.End(err)
	return l, err
}

func (q *Quorum) try(ctx context.Context, name string) (*Lease, error) {
	if err := q.begin(name); err != nil {
		return nil, err
	}
	defer q.life.Done()
	if ctx.Err() != nil {
		return nil, lockErrors.Refused(ctx, name, nil)
	}
	c := newClaim(ctx, lockKey(q.cfg.Prefix, name), q.cfg.Instance) // a new one each time, so that leftovers of another try are not in the way
	trails := make([]link.Trail, len(q.servers))
	fence, err := q.take(ctx, c, trails)
	sent := time.Now()
	if err == nil {
		err = q.renew(ctx, c, fence)
	}
	if err == nil {
		l := q.newLease(ctx, name, c, trails, fence, sent)
		if l.Context().Err() == nil {
			return l, nil
		}
		q.abandon(c, trails)
		return nil, lockErrors.TooLate(l.Context(), name)
	}
	q.abandon(c, trails)
	if errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrRevoked) {
		err = ErrNotAcquired
	}
	return nil, lockErrors.Refused(ctx, name, err)
}

// Do is like Locker.Do.
func (q *Quorum) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	if f == nil {
		return nothingToDo(name)
	}
	l, err := q.Lock(ctx, name)
	if err != nil {
		return err
	}
	return l.do(ctx, f)
}

// DoFenced is like Locker.DoFenced: Do for a function that needs only the fence of the lease. Config.WriteLock of a
// Guard uses it.
func (q *Quorum) DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error {
	if f == nil {
		return nothingToDo(name)
	}
	return q.Do(ctx, name, func(ctx context.Context, l *Lease) error { return f(ctx, l.Fence()) })
}

// newLease begins a lease that a majority granted or renewed when asked at sent.
func (q *Quorum) newLease(ctx context.Context, name string, c *claim, trails []link.Trail, fence int64, sent time.Time) *Lease {
	l := &Lease{from: q, life: q.life, claim: c, trails: trails, name: name, fence: fence, unlocked: q.cfg.Hooks.Held(name)}
	ttl := q.trusted()
	q.life.Add(l, func() {
		l.hold.Begin(ctx, hold.Options{Holder: (*held)(l), TTL: ttl, Max: q.cfg.MaxHold}, sent, ttl)
	})
	if !q.cfg.FixedLease {
		q.life.Go(func() { q.watch(l) }) // owner: the Quorum; stop: the end of the lease; joined by Close
	}
	return l
}

// trusted returns how long a lease may be trusted, given that clocks run apart.
func (q *Quorum) trusted() time.Duration { return q.cfg.TTL - q.cfg.TTL/100 - 2*time.Millisecond }

// watch renews a lease.
func (q *Quorum) watch(l *Lease) {
	timer := time.NewTimer(q.cfg.TTL / 3)
	defer timer.Stop()
	for {
		select {
		case <-l.Context().Done():
			return
		case <-timer.C:
		}
		if q.extend(l.Context(), l) == nil {
			timer.Reset(q.cfg.TTL / 3)
		} else {
			timer.Reset(q.cfg.TTL / 10)
		}
	}
}

// extend renews a lease, or loses it.
func (q *Quorum) extend(ctx context.Context, l *Lease) error {
	sent := time.Now()
	err := q.renew(ctx, l.claim, l.fence)
	switch {
	case err == nil:
		return l.hold.Answered(sent, queue.Done)
	case errors.Is(err, ErrRevoked), errors.Is(err, ErrLeaseLost):
		l.hold.Lose(err)
	}
	return err
}
