package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/rights"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/wake"
	"github.com/cacheguard/go/rwlock"
)

// SelfCheck checks that Redis allows what the Guard needs. Call it when a service starts. It checks that
//
//   - Redis can be reached;
//   - its user may run each command, and use keys and channels that begin with the Prefix (docs/redis.md lists them);
//   - every script of a Get, an Invalidate, an Update and an Intend does what it should;
//   - messages arrive, and, if there is a local tier, invalidations reach it.
//
// It uses keys of its own, and removes them, but for the epoch of the Prefix, which all entries share. It takes at most until ctx ends, or 10 seconds. It does not wait for Redis to
// recover: it returns at once when Redis refuses the connection, the password or a command. The error names what was
// refused.
func (g *Guard) SelfCheck(ctx context.Context) error {
	if g == nil {
		return errNilGuard
	}
	if !g.life.Begin() {
		return ErrClosed
	}
	defer g.life.Done()
	if g.cfg.Disabled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rights.Patience)
	defer cancel()
	for _, check := range []func(context.Context, *Guard) error{
		checkRights, checkSubscription, checkMessages, checkScripts, checkTagged, checkLock, checkInvalidation,
	} {
		if err := check(ctx, g); err != nil {
			if errors.Is(err, ErrClosed) {
				return ErrClosed
			}
			return fmt.Errorf("cacheguard: self-check: %w", err)
		}
	}
	return nil
}

// checkRights tries the user's rights one by one: some refusals only make a script do less, as they should in an
// emergency, and for the others Redis does not name the command.
func checkRights(ctx context.Context, g *Guard) error {
	if err := rights.Guard.Check(ctx, g.life, g.rdb, g.cfg.Prefix); err != nil {
		return err
	}
	return errors.Join(
		rights.CheckChannel(ctx, g.life, g.rdb, g.inbox.Channel()),
		rights.CheckChannel(ctx, g.life, g.rdb, g.notices.Channel))
}

func checkSubscription(ctx context.Context, g *Guard) error {
	g.inbox.Start()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for g.inbox.Address() == "" {
		select {
		case <-tick.C:
		case <-g.life.Ending.Done():
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("cannot subscribe: %w", ctx.Err())
		}
	}
	return nil
}

// checkMessages sends a message as scripts do to wake waiters, and repeats it when it may have been lost with the
// subscription.
func checkMessages(ctx context.Context, g *Guard) error {
	key := g.keys.ValueKey(rights.Name())
	waiter := g.inbox.Watch(key)
	defer waiter.Stop()
	for {
		waiter.Waiting()
		if err := publish(ctx, g, wake.Frame(key, "")); err != nil {
			return fmt.Errorf("cannot send a message: %w", err)
		}
		select {
		case msg := <-waiter.C:
			if !msg.AskAgain {
				return nil
			}
		case <-g.life.Ending.Done():
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("a message did not arrive: %w", ctx.Err())
		}
		if err := checkSubscription(ctx, g); err != nil {
			return fmt.Errorf("a message did not arrive: %w", err)
		}
	}
}

func publish(ctx context.Context, g *Guard, frame string) error {
	_, err := bounded(ctx, g, func(ctx context.Context) (struct{}, error) {
		cmd := redis.NewIntCmd(ctx, "publish", g.inbox.Address(), frame)
		return struct{}{}, g.rdb.Process(ctx, cmd)
	})
	return err
}

// generation is any one, where a script is to return one.
const generation = "a generation"

// checkScripts runs each script as calls do, in the three ways in which a load ends, and in an update.
func checkScripts(ctx context.Context, g *Guard) error {
	key := rights.Name()
	valueKey, token := g.keys.ValueKey(key), rand.Text()
	acquire := g.keys.Acquire(valueKey, protocol.Request{Token: token, Take: true})
	head, tail := protocol.EncodeEntry(key, protocol.Entry{Kind: protocol.Raw, Payload: []byte("value")}, token)
	fill := protocol.Filling{Token: token, TTL: rights.Patience, Head: head, Tail: tail}
	for _, step := range []struct {
		name string
		call func() *script.Call
		want any // what the reply is, or begins with
	}{
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"renew", func() *script.Call { r := g.keys.Renew(valueKey, token); return &r }, int64(1)},
		{"fill", func() *script.Call { return g.keys.Fill(valueKey, fill) }, "stored"},
		{"acquire a value", func() *script.Call { return acquire }, "value"},
		{"invalidate", func() *script.Call { return g.invalidations.next(key) }, int64(1)},
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"fail", func() *script.Call { return g.keys.Fail(valueKey, token, "self-check") }, int64(1)},
		{"invalidate", func() *script.Call { return g.invalidations.next(key) }, int64(1)}, // the failure
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"release", func() *script.Call { return g.keys.Release(valueKey, token) }, int64(1)},
		{"begin_update", func() *script.Call { return g.keys.BeginUpdate(valueKey, token, g.invalidations.notice(key)) }, int64(1)},
		{"renew_update", func() *script.Call { r := g.keys.RenewUpdate(valueKey, token); return &r }, int64(1)},
		{"end_update", func() *script.Call { return g.keys.EndUpdate(valueKey, token, g.invalidations.notice(key)) }, int64(1)},
		{"intend", func() *script.Call { return g.keys.Intend(valueKey, token, g.invalidations.notice(key)) }, int64(1)},
		{"renew_intend", func() *script.Call { r := g.keys.RenewIntend(valueKey, token); return &r }, int64(1)},
		{"done", func() *script.Call { return g.keys.Done(valueKey, token, g.invalidations.notice(key)) }, int64(0)},
		{"begin a put", func() *script.Call {
			return g.keys.BeginPut(valueKey, token, g.invalidations.notice(key), rights.Patience)
		}, generation},
		{"put", func() *script.Call { return g.keys.Put(valueKey, token, g.invalidations.notice(key), fill) }, "stored"},
		{"invalidate", func() *script.Call { return g.invalidations.next(key) }, int64(1)},
	} {
		reply, err := bounded(ctx, g, func(ctx context.Context) (any, error) {
			return step.call().Run(ctx, g.rdb).Result()
		})
		if err != nil {
			return fmt.Errorf("script %s: %w", step.name, err)
		}
		if list, ok := reply.([]any); ok && len(list) > 0 {
			if reply = list[0]; len(list) > 1 && reply == "lease" {
				fill.Generation, _ = list[1].(string)
			}
		}
		if made, ok := reply.(string); ok && made != "" && step.want == generation {
			reply, fill.Generation = generation, made
		}
		if reply != step.want {
			return fmt.Errorf("script %s: it returned %v instead of %v", step.name, reply, step.want)
		}
	}
	return checkRead(ctx, g, key)
}

// checkRead reads a key as Get does: it was updated, so there is none.
func checkRead(ctx context.Context, g *Guard, key string) error {
	read, err := g.link.Get(ctx, g.keys.ValueKey(key))
	switch {
	case err != nil:
		return unanswered(ctx, key, err)
	case read.Err != nil:
		return fmt.Errorf("cannot read a key: %w", read.Err)
	case read.Raw != nil:
		return errors.New("a value is there after it was removed")
	}
	return nil
}

// checkTagged makes epochs as a load does, and invalidates a tag.
func checkTagged(ctx context.Context, g *Guard) error {
	key := rights.Name()
	epochs := g.epochs.Begin(key, g.keys.ValueKey(key), "", nil)
	epochs.Ask(ctx)
	epochs.Prepare(ctx)
	epochs.Ready(ctx)
	if _, err := epochs.Stamp(ctx, nil); err != nil {
		return fmt.Errorf("cannot make an epoch: %w", err)
	}
	ids := g.ofEpochs.inAllParts([]string{epoch.OfTag(key)})
	for _, failed := range g.ofEpochs.forget(ctx, "invalidate", ids, g.ofEpochs.next) {
		return fmt.Errorf("cannot invalidate a tag: %w", failed.Err)
	}
	return nil
}

// checkLock takes a lock as Update does.
func checkLock(ctx context.Context, g *Guard) error {
	err := g.locks.Do(ctx, rights.Name(), func(context.Context, *rwlock.Lease) error { return nil })
	if err != nil {
		return fmt.Errorf("cannot take the lock of an update: %w", err)
	}
	return nil
}

// checkInvalidation invalidates a key, and waits until the tier has heard of it, if there is one.
func checkInvalidation(ctx context.Context, g *Guard) error {
	key := rights.Name()
	var arrived <-chan struct{}
	if g.local != nil {
		arrived = g.local.probes.Add(key)
		defer g.local.probes.Remove(key)
	}
	if failed := g.invalidations.forget(ctx, "invalidate", []string{key}, g.invalidations.next)[key]; failed != nil {
		return fmt.Errorf("cannot invalidate a key: %w", failed.Err)
	}
	if arrived == nil {
		return nil
	}
	select {
	case <-arrived:
		return nil
	case <-g.life.Ending.Done():
		return ErrClosed
	case <-ctx.Done():
		return errors.Join(errors.New("the message of an invalidation did not arrive"), ctx.Err())
	}
}
