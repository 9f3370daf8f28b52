package main

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/program"
)

// Everything in this file is wrong. It shows how each goes wrong.

// unlocked looks and writes, and so does everybody else in between.
type unlocked struct{ shelf }

func openUnlocked(o opening) (seller, error) { return unlocked{newShelf(o)}, nil }

func (s unlocked) Sell(ctx context.Context, user int) error { return s.sell(ctx, user) }

// inProcess keeps the callers of one instance apart, and not those of different ones.
type inProcess struct {
	shelf
	mu *sync.Mutex
}

func openInProcess(o opening) (seller, error) { return inProcess{newShelf(o), new(sync.Mutex)}, nil }

func (s inProcess) Sell(ctx context.Context, user int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sell(ctx, user)
}

// handLocked has the lock of the tutorials: SET NX with a lease that nobody renews, and a poll.
type handLocked struct {
	shelf
	unlock func(ctx context.Context, rdb *redis.Client, key, token string) error
}

// openBlindDelete unlocks with DEL. A holder that comes back after its lease has ended deletes the lock of somebody else, whose own
// DEL then deletes that of a third: from then on, there are always two at work.
func openBlindDelete(o opening) (seller, error) {
	return handLocked{newShelf(o), func(ctx context.Context, rdb *redis.Client, key, _ string) error {
		return rdb.Del(ctx, key).Err()
	}}, nil
}

var deleteOwn = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`)

// openShortLease deletes its own lock only. But work that takes longer than the lease still meets the next one's.
func openShortLease(o opening) (seller, error) {
	return handLocked{newShelf(o), func(ctx context.Context, rdb *redis.Client, key, token string) error {
		return deleteOwn.Run(ctx, rdb, []string{key}, token).Err()
	}}, nil
}

func (s handLocked) Sell(ctx context.Context, user int) error {
	key, token := s.prefix+":handlock", rand.Text()
	for {
		got, err := s.rdb.SetNX(ctx, key, token, s.lease).Result()
		if err != nil {
			return err
		}
		if got {
			break
		}
		if !program.Pause(ctx, time.Millisecond+mathrand.N(4*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
	err := s.sell(ctx, user)
	if failed := s.unlock(context.WithoutCancel(ctx), s.rdb, key, token); err == nil {
		err = failed
	}
	return err
}
