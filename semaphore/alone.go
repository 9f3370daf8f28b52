package semaphore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/breaker"
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

// take takes one of n permits, and waits that long for it. It returns nil if there was none, and how to give it back otherwise.
func (a *alone) take(ctx, ending context.Context, name string, n int, wait time.Duration) (giveBack func()) {
	a.mu.Lock()
	o := a.byName[name]
	if o == nil {
		if a.byName == nil {
			a.byName = make(map[string]*own)
		}
		o = &own{Slots: slots.New(n)}
		a.byName[name] = o
	}
	o.users++
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(ending, cancel)()
	if !o.TryAcquire() && (wait == 0 || !o.Acquire(ctx, func() int { return 1 })) {
		a.leave(name, o)
		return nil
	}
	return sync.OnceFunc(func() {
		o.Release()
		a.leave(name, o)
	})
}

func (a *alone) leave(name string, o *own) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.users--; o.users == 0 {
		delete(a.byName, name)
	}
}

// aloneLease is a permit of the process's own. Nobody else has to learn of it, so with a watchdog it lasts until it is given back.
func (c *claim) aloneLease(ctx context.Context, giveBack func()) *Lease {
	length := c.Config.TTL
	if !c.Config.FixedLease {
		length = config.Longest
	}
	l := &Lease{claim: c, alone: giveBack, unlocked: c.Config.Hooks.Held(c.name)}
	options := c.Holding((*held)(l))
	options.Keeper = nil
	c.life.Add(l, func() { l.hold.Begin(ctx, options, time.Now(), length) })
	return l
}

// giveUp ends the lease, wherever its permit is from. It returns queue.Done, or why there was nothing to give up.
func (l *Lease) giveUp() (reply int, err error) {
	if l.alone == nil {
		return l.claim.GiveUp(&l.hold, l.fence)
	}
	if !l.hold.End() {
		return queue.Lost, nil
	}
	l.alone()
	return queue.Done, nil
}
