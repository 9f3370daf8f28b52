package semaphore

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/locktest"
)

func TestLeasesAndLockersAreLikeThoseOfAllLocks(t *testing.T) {
	t.Parallel()
	locktest.RunFace(t, locktest.Face[*Locker, *Lease]{
		Server: shared,
		Open: func(rdb *redis.Client, cfg config.Lock) (*Locker, error) {
			return New(rdb, Config{
				Prefix: cfg.Prefix, Instance: cfg.Instance, TTL: cfg.TTL, FixedLease: cfg.FixedLease, MaxHold: cfg.MaxHold,
				RedisTimeout: cfg.RedisTimeout, Hooks: Hooks(cfg.Hooks), Permits: 1,
			})
		},
		Lose: func(l *Lease, cause error) { l.held.Lose(cause) },
	})
}
