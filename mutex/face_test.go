package mutex

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/locktest"
)

func TestLeasesAndLockersAreLikeThoseOfAllLocks(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Config) {
		locktest.RunFace(t, locktest.Face[*Locker, *Lease]{
			Server: shared,
			Open: func(rdb *redis.Client, cfg config.Lock) (*Locker, error) {
				c := configOf(cfg)
				c.Fair = kind.Fair
				return New(rdb, c)
			},
			Lose: func(l *Lease, cause error) { l.held.Lose(cause) },
		})
	})
}

func TestLeasesOfAQuorumAreLikeThoseOfAllLocks(t *testing.T) {
	t.Parallel()
	locktest.RunFace(t, locktest.Face[*Quorum, *Lease]{
		Server: shared, Polls: true,
		Open: func(rdb *redis.Client, cfg config.Lock) (*Quorum, error) {
			return NewQuorum([]Redis{rdb}, configOf(cfg))
		},
		Lose: func(l *Lease, cause error) { l.held.Lose(cause) },
	})
}

func configOf(cfg config.Lock) Config {
	return Config{
		Prefix: cfg.Prefix, Instance: cfg.Instance, TTL: cfg.TTL, FixedLease: cfg.FixedLease, MaxHold: cfg.MaxHold,
		RedisTimeout: cfg.RedisTimeout, Hooks: Hooks(cfg.Hooks),
	}
}
