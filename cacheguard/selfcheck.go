package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/wake"
)

// selfCheckPatience bounds a SelfCheck whose context has no deadline.
const selfCheckPatience = 10 * time.Second

// SelfCheck finds out whether what the Guard needs of Redis works, for use when a service starts: that scripts run, that
// messages arrive, and, if there is a local tier, that invalidations reach it. It invalidates a key that does not exist,
// and waits for the messages until ctx ends, or for 10 seconds. The error says what does not work; Get works all the
// same, but with polls where there should be messages.
func (g *Guard) SelfCheck(ctx context.Context) error {
	if g == nil {
		return errNilGuard
	}
	if !g.begin() {
		return ErrClosed
	}
	defer g.tasks.Done()
	ctx, cancel := context.WithTimeout(ctx, selfCheckPatience)
	defer cancel()
	for _, check := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"subscribe", g.checkSubscription},
		{"send a message to itself", g.checkMessages},
		{"invalidate a key", g.checkInvalidation},
	} {
		if err := check.do(ctx); err != nil {
			return fmt.Errorf("cacheguard: self-check: cannot %s: %w", check.what, err)
		}
	}
	return nil
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
			return ctx.Err()
		}
	}
	return nil
}

// checkMessages sends a message as scripts do to wake those who wait, and again when it may have been lost with the
// subscription.
func (g *Guard) checkMessages(ctx context.Context) error {
	key := g.redisKey("self-check:" + rand.Text())
	waiter := g.inbox.Watch(key)
	defer waiter.Stop()
	for {
		waiter.Waiting()
		if err := g.publish(ctx, wake.Frame(key, "")); err != nil {
			return err
		}
		select {
		case msg := <-waiter.C:
			if !msg.AskAgain {
				return nil
			}
		case <-g.ending:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("it did not arrive: %w", ctx.Err())
		}
		if err := g.checkSubscription(ctx); err != nil {
			return fmt.Errorf("it did not arrive: %w", err)
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

// checkInvalidation invalidates a key, and waits until the tier has heard of it, if there is one.
func (g *Guard) checkInvalidation(ctx context.Context) error {
	key := "self-check:" + rand.Text()
	var arrived <-chan struct{}
	if g.local != nil {
		arrived = g.local.probes.add(key)
		defer g.local.probes.remove(key)
	}
	if failed := g.forget(ctx, "invalidate", []string{key}, g.invalidation)[key]; failed != nil {
		return failed.Err
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
		return errors.Join(errors.New("the message of it did not arrive"), ctx.Err())
	}
}

// probes are keys whose invalidation somebody waits to hear of.
type probes struct {
	mu   sync.Mutex
	keys map[string]chan struct{}
}

func (p *probes) add(key string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = make(map[string]chan struct{})
	}
	c := make(chan struct{})
	p.keys[key] = c
	return c
}

func (p *probes) remove(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, key)
}

func (p *probes) found(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.keys[key]; c != nil {
		close(c)
		delete(p.keys, key)
	}
}
