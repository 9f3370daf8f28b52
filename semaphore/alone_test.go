package semaphore

import (
	"context"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAProcessGoesOnWithItsOwnPermitsWithoutRedisAndReturnsToThoseOfRedis(t *testing.T) {
	t.Parallel()
	f, k, p := behind(t, Config{WithoutRedis: 2})
	p.Refuse(true)
	held := []*Lease{take(t, k), take(t, k)}
	_, err := k.TryLock(t.Context(), "a")
	expect.ErrorIs(t, err, ErrNotAcquired)
	w := wait(t, k)
	expect.ErrorIs(t, held[0].Extend(t.Context()), nil)
	unlock(t, held[0])
	held[0] = w.Got()
	expect.Equal(t, "its context lives", held[0].Context().Err(), nil)

	p.Refuse(false)
	var l *Lease
	redistest.Await(t, "a permit of Redis", func() bool {
		l = take(t, k)
		if l.held.ByItself {
			unlock(t, l)
		}
		return !l.held.ByItself
	})
	expect.Equal(t, "holders that Redis knows of", len(f.info().Holders), 1)
	unlock(t, append(held, l)...)
	expect.Equal(t, "permits that are left", k.alone.Present("a"), false)
}

func TestCloseEndsThePermitsThatAProcessHasOfItsOwn(t *testing.T) {
	t.Parallel()
	_, k, p := behind(t, Config{WithoutRedis: 1})
	p.Refuse(true)
	l := take(t, k)
	w := wait(t, k)
	redistest.Await(t, "a caller that waits for the process's own permit", func() bool { return k.alone.Waiting("a") == 1 })
	expect.ErrorIs(t, k.Close(), nil)
	expect.ErrorIs(t, w.Err(), ErrClosed)
	expect.ErrorIs(t, context.Cause(l.Context()), ErrClosed)
	expect.ErrorIs(t, l.Unlock(t.Context()), ErrClosed)
	expect.Equal(t, "permits that are left", k.alone.Present("a"), false)
}

func TestNumbersOfPermitsThatAreOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	_, err := New(standalone(t), Config{Permits: 1, WithoutRedis: -1})
	if err == nil || !strings.Contains(err.Error(), "Config.WithoutRedis: -1 is not between 0 and 10000") {
		t.Error(err)
	}
	_, err = New(standalone(t), Config{Permits: mostPermits + 1})
	if err == nil || !strings.Contains(err.Error(), "Config.Permits") {
		t.Error(err)
	}
}
