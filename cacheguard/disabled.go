package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/inprocess"
	"github.com/cacheguard/go/rwlock"
)

// errDisabled is why a disabled Guard does not ask Redis.
var errDisabled = inprocess.ErrDisabled

// disabled returns the Config of a disabled Guard: without the features that need Redis.
func (c Config) disabled() Config {
	c.FailClosed, c.Local, c.Verify, c.Replicas, c.WriteLock = false, LocalConfig{}, VerifyConfig{}, 0, nil
	c.Serve, c.Shadow = nil, 0
	return c
}

// runInProcess is Update without Redis, under locks of this Guard.
func (u *update) runInProcess(ctx context.Context) (err error) {
	g := u.guard
	release, ok := g.process.Locks.Acquire(ctx, g.life.Ending.Done(), u.keys)
	switch {
	case ok:
	case g.life.Ending.Err() != nil:
		return ErrClosed
	default:
		return fmt.Errorf("cacheguard: update %q: %w", u.keys, notWritten(ctx))
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
	g.process.Overtake()
	defer func() { // also when write panics
		close(stopped)
		g.process.Overtake()
		err = errors.Join(err, stop())
		release()
	}()
	return u.callWrite(ctx)
}
