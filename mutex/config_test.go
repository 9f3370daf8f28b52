package mutex

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
)

func mention(t *testing.T, err error, field string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), field) {
		t.Errorf("%v does not mention %s", err, field)
	}
}

func TestEveryBadFieldIsNamed(t *testing.T) {
	t.Parallel()
	bad := Config{Prefix: "{", TTL: time.Millisecond, Watchdog: 2, MaxHold: time.Microsecond, RedisTimeout: 1}
	_, err := New((*redis.Client)(nil), bad)
	for _, field := range []string{"rdb", "Prefix", "TTL", "Watchdog", "MaxHold", "RedisTimeout"} {
		mention(t, err, field)
	}
}

func TestANilLockerSaysSo(t *testing.T) {
	t.Parallel()
	var k *Locker
	_, err := k.Lock(t.Context(), "k")
	expect.ErrorIs(t, err, lifecycle.ErrNilLocker)
	_, err = k.Inspect(t.Context(), "k")
	expect.ErrorIs(t, err, lifecycle.ErrNilLocker)
	expect.ErrorIs(t, k.Close())
	var q *Quorum
	_, err = q.Lock(t.Context(), "k")
	expect.ErrorIs(t, err, lifecycle.ErrNilLocker)
	expect.ErrorIs(t, q.Close())
}

func TestDoWithNothingToDoIsRefusedBeforeItLocks(t *testing.T) {
	t.Parallel()
	if err := new(Locker).Do(t.Context(), "a", nil); err == nil || !strings.Contains(err.Error(), "f is nil") {
		t.Error(err)
	}
	if err := new(Quorum).Do(t.Context(), "a", nil); err == nil || !strings.Contains(err.Error(), "f is nil") {
		t.Error(err)
	}
}
