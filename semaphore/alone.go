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
)

// again is after how long a caller that waits for a permit of the process's own asks Redis once more.
const again = time.Second

// isAway reports whether an error of a request says that Redis cannot be reached, and the Config what to do then.
func (k *Locker) isAway(err error) bool {
	return k.alone.Width > 0 && breaker.Unavailable(err) && !errors.Is(err, ErrNotAcquired) && !errors.Is(err, ErrClosed)
}

// takeAlone takes one of the permits that the process hands out by itself while Redis cannot be reached, and waits that long for it.
func (k *Locker) takeAlone(ctx context.Context, name string, wait time.Duration) (*locker.Lease, queue.Grant, error) {
	p := new(permit)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if p.guest.Enter(ctx, k.base.Life.Ending, &k.alone, name) != nil {
		return nil, queue.Grant{}, ErrNotAcquired
	}
	cfg := &k.base.Config
	p.lease.Locker, p.lease.Claim, p.lease.Name, p.lease.Token, p.lease.ByItself = k.base, p, name, keys.NewToken(cfg.Instance), true
	length := cfg.TTL
	if !cfg.FixedLease {
		length = config.Longest
	}
	return &p.lease, queue.Grant{Sent: time.Now(), Length: length}, nil
}

// permit is one of the process's own. Nobody else has to learn of it, so with a watchdog it lasts until it is given back.
type permit struct {
	lease locker.Lease
	guest queue.Guest // inside as long as the permit is held
	left  sync.Once
}

func (p *permit) Renewal() script.Call { return script.Call{} } // nobody asks for it

func (p *permit) Extend(context.Context) (reply int, sent time.Time, err error) {
	return queue.Done, time.Now(), nil
}

func (p *permit) GiveUp(trusted bool) (reply int, err error) {
	if !trusted {
		return queue.Lost, nil
	}
	p.Abandon()
	return queue.Done, nil
}

func (p *permit) Abandon() { p.left.Do(p.guest.Leave) }
func (p *permit) Lost()    { p.Abandon() }
