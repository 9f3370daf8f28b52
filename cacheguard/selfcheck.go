package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/rights"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/wake"
	"github.com/cacheguard/go/rwlock"
)

// SelfCheck finds out whether what the Guard needs of Redis works, for use when a service starts: that Redis can be
// reached, that its user may run each command (docs/redis.md lists them), keys and channels that begin with the Prefix, that
// every script of a Get, an Invalidate and an Update does what it should, that messages arrive, and, if there is a local
// tier, that invalidations reach it. It does so on keys of its own, and removes them. It waits until ctx ends, or for 10
// seconds, but not for Redis to become better: a refused connection, a wrong password and a refused command are returned at
// once. The error names what was refused.
func (g *Guard) SelfCheck(ctx context.Context) error {
	if g == nil {
		return errNilGuard
	}
	if !g.begin() {
		return ErrClosed
	}
	defer g.tasks.Done()
	ctx, cancel := context.WithTimeout(ctx, rights.Patience)
	defer cancel()
	for _, check := range []func(context.Context) error{
		g.checkRights, g.checkSubscription, g.checkMessages, g.checkScripts, g.checkLock, g.checkInvalidation,
	} {
		if err := check(ctx); err != nil {
			if errors.Is(err, ErrClosed) {
				return ErrClosed
			}
			return fmt.Errorf("cacheguard: self-check: %w", err)
		}
	}
	return nil
}

// checkRights has the user's rights tried one by one: some refusals make a script go on with less, as it should in an
// emergency, and of the others Redis does not say which command it was.
func (g *Guard) checkRights(ctx context.Context) error {
	if err := rights.Guard.Check(ctx, &g.tasks, g.rdb, g.cfg.Prefix); err != nil {
		return err
	}
	return errors.Join(
		rights.CheckChannel(ctx, &g.tasks, g.rdb, g.inbox.Channel()),
		rights.CheckChannel(ctx, &g.tasks, g.rdb, g.notices.Channel))
}

func (g *Guard) checkSubscription(ctx context.Context) error {
	g.inbox.Start()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for g.inbox.Address() == "" {
		select {
		case <-tick.C:
		case <-g.ending:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("cannot subscribe: %w", ctx.Err())
		}
	}
	return nil
}

// checkMessages sends a message as scripts do to wake those who wait, and again when it may have been lost with the
// subscription.
func (g *Guard) checkMessages(ctx context.Context) error {
	key := g.redisKey(rights.Name())
	waiter := g.inbox.Watch(key)
	defer waiter.Stop()
	for {
		waiter.Waiting()
		if err := g.publish(ctx, wake.Frame(key, "")); err != nil {
			return fmt.Errorf("cannot send a message: %w", err)
		}
		select {
		case msg := <-waiter.C:
			if !msg.AskAgain {
				return nil
			}
		case <-g.ending:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("a message did not arrive: %w", ctx.Err())
		}
		if err := g.checkSubscription(ctx); err != nil {
			return fmt.Errorf("a message did not arrive: %w", err)
		}
	}
}

func (g *Guard) publish(ctx context.Context, frame string) error {
	_, err := bounded(ctx, g, func(ctx context.Context) (struct{}, error) {
		cmd := redis.NewIntCmd(ctx, "publish", g.inbox.Address(), frame)
		return struct{}{}, g.rdb.Process(ctx, cmd)
	}, nil)
	return err
}

// checkScripts runs each script as calls do, in the three ways in which a load ends, and in an update.
func (g *Guard) checkScripts(ctx context.Context) error {
	key := rights.Name()
	m := g.newMissed(&job{key: key, valueKey: g.redisKey(key), shape: protocol.ShapeOf[string]{}}, nil, nil)
	acquire := m.keys.Acquire(m.valueKey, protocol.Request{Token: m.token, Take: true})
	head, tail := protocol.EncodeEntry(protocol.Raw, 0, 0, m.token, []byte("value"))
	fill := protocol.Filling{Token: m.token, TTL: rights.Patience, Head: head, Tail: tail}
	for _, step := range []struct {
		name string
		call func() *script.Call
		want any // what the reply is, or begins with
	}{
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"renew", func() *script.Call { r := m.keys.Renew(m.valueKey, m.token); return &r }, int64(1)},
		{"fill", func() *script.Call { return m.keys.Fill(m.valueKey, fill) }, "stored"},
		{"acquire a value", func() *script.Call { return acquire }, "value"},
		{"invalidate", func() *script.Call { return g.invalidation(key) }, int64(1)},
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"fail", func() *script.Call { return m.keys.Fail(m.valueKey, m.token, "self-check") }, int64(1)},
		{"invalidate", func() *script.Call { return g.invalidation(key) }, int64(0)},
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"release", func() *script.Call { return m.keys.Release(m.valueKey, m.token) }, int64(1)},
		{"begin_update", func() *script.Call { return g.beginUpdate(key, m.token) }, int64(1)},
		{"renew_update", func() *script.Call { r := g.keys.RenewUpdate(g.redisKey(key), m.token); return &r }, int64(1)},
		{"end_update", func() *script.Call { return g.endUpdate(key, m.token) }, int64(1)},
	} {
		reply, err := bounded(ctx, g, func(ctx context.Context) (any, error) {
			return step.call().Run(ctx, g.rdb).Result()
		}, nil)
		if err != nil {
			return fmt.Errorf("script %s: %w", step.name, err)
		}
		if list, ok := reply.([]any); ok && len(list) > 0 {
			if reply = list[0]; len(list) > 1 && reply == "lease" {
				fill.Generation, _ = list[1].(string)
			}
		}
		if reply != step.want {
			return fmt.Errorf("script %s: it returned %v instead of %v", step.name, reply, step.want)
		}
	}
	return g.checkRead(ctx, key)
}

// checkRead reads a key as Get does: it was updated, so there is none.
func (g *Guard) checkRead(ctx context.Context, key string) error {
	read, err := g.link.Get(ctx, g.redisKey(key))
	switch {
	case err != nil:
		return g.ended(ctx, key, err)
	case read.Err != nil:
		return fmt.Errorf("cannot read a key: %w", read.Err)
	case read.Raw != nil:
		return errors.New("a value is there after it was removed")
	}
	return nil
}

// checkLock takes a lock as Update does.
func (g *Guard) checkLock(ctx context.Context) error {
	err := g.locks.Do(ctx, rights.Name(), func(context.Context, *rwlock.Lease) error { return nil })
	if err != nil {
		return fmt.Errorf("cannot take the lock of an update: %w", err)
	}
	return nil
}

// checkInvalidation invalidates a key, and waits until the tier has heard of it, if there is one.
func (g *Guard) checkInvalidation(ctx context.Context) error {
	key := rights.Name()
	var arrived <-chan struct{}
	if g.local != nil {
		arrived = g.local.probes.Add(key)
		defer g.local.probes.Remove(key)
	}
	if failed := g.forget(ctx, "invalidate", []string{key}, g.invalidation)[key]; failed != nil {
		return fmt.Errorf("cannot invalidate a key: %w", failed.Err)
	}
	if arrived == nil {
		return nil
	}
	select {
	case <-arrived:
		return nil
	case <-g.ending:
		return ErrClosed
	case <-ctx.Done():
		return errors.Join(errors.New("the message of an invalidation did not arrive"), ctx.Err())
	}
}
