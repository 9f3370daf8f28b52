package mutex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/config"
)

// Quorum hands out locks that are kept by a majority of independent Redis servers, so that they survive the loss of the
// others. It is safe for concurrent use. The algorithm is Redlock
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) with a second round, where a majority
// learns the fence: so fences grow, as any two majorities share a server. Its leases have the limits of all leases: see
// the package comment. There is no Inspect, Revoke, LockMany or SelfCheck across servers; use a Locker for one of them.
// Package admin shows what all of them say.
type Quorum struct {
	base     *locker.Locker
	servers  []*send.Sender
	majority int
}

// Without push, a Quorum polls while others have the lock. A random pause lets one of several get a majority.
const (
	shortestRetry = 10 * time.Millisecond
	longestRetry  = 200 * time.Millisecond
)

// NewQuorum returns a Quorum on independent servers, preferably 3 or 5. A cluster, or a primary with its replicas,
// counts as one. It does no I/O. It refuses Config.Fair, as there is no queue across servers, and Config.Replicas.
//
// A server that restarts must come back with what it had (appendonly yes, appendfsync always), or stay away for the longest
// TTL that is in use. One that comes back empty at once has forgotten whom it voted for: if the lease of the holder has a bare
// majority, another one can get the lock beside it, through the loss of a single server. Fences grow all the same.
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
	base := locker.New(pkg, cfg.common().WithDefaults())
	base.Trust -= base.Trust/100 + 2*time.Millisecond // as clocks run apart
	q := &Quorum{base: base, majority: len(clients)/2 + 1}
	for _, rdb := range clients {
		q.servers = append(q.servers, send.NewSender(rdb, base.Config.RedisTimeout, base.Life.Life))
	}
	return q, nil
}

func (q *Quorum) core() *locker.Locker {
	if q == nil || q.base == nil {
		return locker.Nil(pkg)
	}
	return q.base
}

// Close is like Locker.Close.
func (q *Quorum) Close() error {
	return q.core().Close(func() {
		for _, server := range q.servers {
			server.Close()
		}
	})
}

// Lock is like Locker.Lock. It returns an error of Redis at once if no majority can be reached at all, or when none can
// be reached for longer than TTL during the wait.
func (q *Quorum) Lock(ctx context.Context, name string) (*Lease, error) {
	return q.watched(locker.Get(ctx, q.core(), "Lock", name, q, askInTurns))
}

// askInTurns asks until a majority has granted the lock.
func askInTurns(ctx context.Context, name string, q *Quorum) (l *locker.Lease, g queue.Grant, err error) {
	var answered time.Time // when a majority said no
	life, ttl := q.base.Life, q.base.Config.TTL
	for pause := shortestRetry; ; pause = min(2*pause, longestRetry) {
		asked := time.Now()
		l, g, err = askAll(ctx, name, q)
		if errors.Is(err, ErrNotAcquired) {
			answered = asked
		}
		switch {
		case ctx.Err() != nil && err != nil && !answered.IsZero():
			return l, g, ErrNotAcquired // as a majority has said
		case err == nil || time.Since(answered) > ttl || ctx.Err() != nil:
			return l, g, err
		}
		life.Sleep(ctx, pause/2+rand.N(pause))
		if life.Ending.Err() != nil {
			return l, g, ErrClosed
		}
	}
}

// TryLock is like Locker.TryLock. But if several callers ask at the same time, each may get some of the servers and
// none a majority: then all are refused.
func (q *Quorum) TryLock(ctx context.Context, name string) (*Lease, error) {
	return q.watched(locker.Get(ctx, q.core(), "TryLock", name, q, askAll))
}

// askAll asks all servers for the lock, once.
func askAll(ctx context.Context, name string, q *Quorum) (*locker.Lease, queue.Grant, error) {
	b := q.newBid(ctx, name)
	fence, err := b.take(ctx)
	g := queue.Grant{Fence: fence, Sent: time.Now(), Length: q.base.Trust}
	if err == nil {
		err = b.renew(ctx, fence)
	}
	if errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrRevoked) {
		err = ErrNotAcquired
	}
	if err != nil {
		b.Abandon()
		if ctx.Err() != nil && !errors.Is(err, ErrNotAcquired) {
			err = context.Cause(ctx) // once, and not from each server
		}
		return nil, g, err
	}
	return &b.lease, g, nil
}

// watched has a lease renewed.
func (q *Quorum) watched(l *locker.Lease, err error) (*Lease, error) {
	if err == nil && !q.base.Config.FixedLease && q.base.Life.Enter() { // else it was aborted
		go func() { // owner: the Quorum; stop: the end of the lease; joined by Close
			defer q.base.Life.Leave()
			l.Claim.(*bid).watch()
		}()
	}
	return leased(l, err)
}

// Do is like Locker.Do.
func (q *Quorum) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	return locker.Run(ctx, q, (*Quorum).Lock, q.core(), (*Lease).core, name, f)
}

// DoFenced is like Locker.DoFenced: Do for a function that needs only the fence of the lease. Config.WriteLock of a
// Guard uses it.
func (q *Quorum) DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error {
	return locker.Run(ctx, q, (*Quorum).Lock, q.core(), (*Lease).core, name, fenced(f))
}

// errUnasked is the vote of a server that could not be reached when the lock was asked for.
var errUnasked = errors.New("not asked")

// vote is what one server says to a request.
type vote struct {
	reply int
	fence int64
	err   error
}

// ballot asks every server at once, and counts until a majority says yes, or no majority can. The others go on by themselves.
func (q *Quorum) ballot(ask func(server int) vote) (votes []vote, ok bool) {
	all := make(chan vote, len(q.servers))
	for i := range q.servers {
		q.base.Life.Go(func() { all <- ask(i) }) // owner: the Quorum; stop: RedisTimeout; joined by Close
	}
	yes := 0
	for range q.servers {
		v := <-all
		votes = append(votes, v)
		if v.err == nil && v.reply == queue.Done {
			yes++
		}
		if yes == q.majority {
			return votes, true
		}
		if len(votes)-yes > len(q.servers)-q.majority {
			return votes, false
		}
	}
	return votes, false
}

// verdict returns why there is no majority: no, if a server said so, because another caller may get one; else the
// errors.
func verdict(votes []vote, no error) error {
	var errs []error
	for _, v := range votes {
		if v.err == nil && v.reply != queue.Done {
			return no
		}
		errs = append(errs, v.err)
	}
	return errors.Join(errs...)
}
