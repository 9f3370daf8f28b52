package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/segment"
	"github.com/cacheguard/go/semaphore"
)

// Everything on the client shares its breaker, so none of these calls finds out for itself that Redis does not answer.
func TestWhileRedisDoesNotAnswerEveryKindOfLockFailsAtOnce(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	rdb, ctx := proxy.Client(t), context.Background()
	opened := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := mutex.New(rdb, mutex.Config{})
	opened(err)
	fair, err := mutex.New(rdb, mutex.Config{Prefix: "fair", Fair: true})
	opened(err)
	replicated, err := mutex.New(rdb, mutex.Config{Prefix: "replicated", Replicas: 1})
	opened(err)
	rw, err := rwlock.New(rdb, rwlock.Config{})
	opened(err)
	s, err := semaphore.New(rdb, semaphore.Config{Permits: 2})
	opened(err)
	store, err := cas.New(rdb, cas.Config{})
	opened(err)
	counter, err := segment.New(rdb, segment.Config{Segments: 1})
	opened(err)
	for _, one := range []interface{ Close() error }{m, fair, replicated, rw, s, store, counter} {
		defer func() { _ = one.Close() }() // always nil
	}
	version, err := cas.Swap(ctx, store, "k", "", 1)
	opened(err)
	opened(counter.Create(ctx, "c", 10))
	held, err := m.Lock(ctx, "held")
	opened(err)

	var scripts atomic.Int64 // but releases, in the background, of what "trip" may have taken and "held" has
	down := proxy.On(func(args []string) bool {
		released := slices.ContainsFunc(args, func(arg string) bool {
			return strings.Contains(arg, "{trip}") || strings.Contains(arg, "{held}")
		})
		if name := strings.ToLower(args[0]); !released && (name == "eval" || name == "evalsha" || name == "wait") {
			scripts.Add(1)
		}
		return true
	}, redistest.ReplyError("LOADING Redis is loading the dataset in memory"))
	redistest.Await(t, "the breaker is open", func() bool {
		_, err := m.TryLock(ctx, "trip")
		return errors.Is(err, breaker.ErrOpen)
	})
	unused := func(context.Context, *mutex.Lease) error { t.Error("it has the lock"); return nil }
	for name, call := range map[string]func() error{
		"mutex.Lock":              func() error { _, err := m.Lock(ctx, "k"); return err },
		"mutex.TryLock":           func() error { _, err := m.TryLock(ctx, "k"); return err },
		"mutex.LockMany":          func() error { _, err := m.LockMany(ctx, "a", "b"); return err },
		"mutex.Do":                func() error { return m.Do(ctx, "k", unused) },
		"mutex.Once":              func() error { _, err := m.Once(ctx, "k", time.Hour, unused); return err },
		"mutex.Revoke":            func() error { _, err := m.Revoke(ctx, "k"); return err },
		"mutex.Inspect":           func() error { _, err := m.Inspect(ctx, "k"); return err },
		"mutex.Lock, fair":        func() error { _, err := fair.Lock(ctx, "k"); return err },
		"mutex.Lock, replicated":  func() error { _, err := replicated.Lock(ctx, "k"); return err },
		"rwlock.Lock":             func() error { _, err := rw.Lock(ctx, "k"); return err },
		"rwlock.RLock":            func() error { _, err := rw.RLock(ctx, "k"); return err },
		"rwlock.TryLock":          func() error { _, err := rw.TryLock(ctx, "k"); return err },
		"rwlock.TryRLock":         func() error { _, err := rw.TryRLock(ctx, "k"); return err },
		"rwlock.Revoke":           func() error { _, err := rw.Revoke(ctx, "k"); return err },
		"semaphore.Lock":          func() error { _, err := s.Lock(ctx, "k"); return err },
		"semaphore.TryLock":       func() error { _, err := s.TryLock(ctx, "k"); return err },
		"semaphore.Revoke":        func() error { _, err := s.Revoke(ctx, "k"); return err },
		"cas.Get":                 func() error { _, _, err := cas.Get[int](ctx, store, "k"); return err },
		"cas.Swap":                func() error { _, err := cas.Swap(ctx, store, "k", version, 2); return err },
		"cas.Delete":              func() error { return cas.Delete(ctx, store, "k", version) },
		"segment.Create":          func() error { return counter.Create(ctx, "d", 1) },
		"segment.Add":             func() error { return counter.Add(ctx, "c", 1) },
		"segment.Take":            func() error { return counter.Take(ctx, "c", 1) },
		"segment.TakeUpTo":        func() error { _, err := counter.TakeUpTo(ctx, "c", 1); return err },
		"segment.Rebalance":       func() error { return counter.Rebalance(ctx, "c") },
		"segment.Total":           func() error { _, err := counter.Total(ctx, "c"); return err },
		"Unlock of what was held": func() error { return held.Unlock(ctx) },
		"cas.Update": func() error {
			_, err := cas.Update(ctx, store, "k", func(int, bool) (int, error) { return 3, nil })
			return err
		},
	} {
		before := scripts.Load()
		if err := call(); !errors.Is(err, breaker.ErrOpen) {
			t.Errorf("%s: %v", name, err)
		}
		if sent := scripts.Load() - before; sent > 0 {
			t.Errorf("%s has sent %d scripts", name, sent)
		}
	}
	down.Remove()
	redistest.Await(t, "a probe has found that Redis is back", func() bool {
		l, err := m.TryLock(ctx, "k")
		return err == nil && l.Unlock(ctx) == nil
	})
}
