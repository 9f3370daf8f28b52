package semaphore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/slots"
)

// alone has the permits that a process hands out by itself while Redis cannot be reached.
type alone struct {
	mu     sync.Mutex
	byName map[string]*own
}

// own counts the permits of a name while somebody has or wants one.
type own struct {
	*slots.Slots

	users int
}

// again is after how long a caller that waits for such a permit asks Redis once more.
const again = time.Second

// isAway reports whether an error of a request says that Redis cannot be reached, and the Config what to do then.
func (k *Locker) isAway(err error) bool {
	return k.withoutRedis > 0 && breaker.Unavailable(err) && !errors.Is(err, ErrNotAcquired) && !errors.Is(err, ErrClosed)
}

// take takes one of the process's permits, and waits that long for it.
func (a *alone) take(ctx context.Context, k *Locker, name string, wait time.Duration) (*locker.Lease, queue.Grant, error) {
	o := a.enter(name, k.withoutRedis)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(k.permits.Life.Ending, cancel)()
	if !o.TryAcquire() && (wait == 0 || !o.Acquire(ctx, func() int { return 1 })) {
		a.leave(name, o)
		return nil, queue.Grant{}, ErrNotAcquired
	}
	p := &permit{giveBack: sync.OnceFunc(func() {
		o.Release()
		a.leave(name, o)
	})}
	cfg := &k.permits.Config
	p.lease.Locker, p.lease.Claim, p.lease.Name, p.lease.Token, p.lease.ByItself = k.permits.Locker, p, name, keys.NewToken(cfg.Instance), true
	length := cfg.TTL
	if !cfg.FixedLease {
		length = config.Longest
	}
	return &p.lease, queue.Grant{Sent: time.Now(), Length: length}, nil
}

func (a *alone) enter(name string, n int) *own {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.byName[name]
	if o == nil {
		if a.byName == nil {
			a.byName = make(map[string]*own)
		}
		o = &own{Slots: slots.New(n)}
		a.byName[name] = o
	}
	o.users++
	return o
}

func (a *alone) leave(name string, o *own) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.users--; o.users == 0 {
		delete(a.byName, name)
	}
}

// permit is one of the process's own. Nobody else has to learn of it, so with a watchdog it lasts until it is given back.
type permit struct {
	lease    locker.Lease
	giveBack func()
}

func (p *permit) Renewal() script.Call { return script.Call{} } // nobody asks for it

func (p *permit) Extend(context.Context) (reply int, sent time.Time, err error) {
	return queue.Done, time.Now(), nil
}

func (p *permit) GiveUp(trusted bool) (reply int, err error) {
	if !trusted {
		return queue.Lost, nil
	}
	p.giveBack()
	return queue.Done, nil
}

func (p *permit) Abandon() { p.giveBack() }
func (p *permit) Lost()    { p.giveBack() }
