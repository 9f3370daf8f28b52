package mutex

import (
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/model"
)

// The common cases of scripts run before the prelude. They do what the rest would do, whatever has happened to the lock.
func TestTheCommonCasesOfScriptsDoWhatTheRestDoes(t *testing.T) {
	t.Parallel()
	lock := model.NewShortcut(text("fields"), text("lock_free"), whole("lock"))
	unlock := model.NewShortcut(text("fields"), text("unlock_lone"), whole("unlock"))
	telling := []uint64{4} // finds each of the mistakes that are put into common cases
	for _, seed := range append(telling, model.Seeds(t, expect.Samples(2, 40))...) {
		newWalk(t, seed, lock, unlock).Run(150)
		if t.Failed() {
			t.Fatalf("in the walk of MODEL_SEED=%d", seed)
		}
	}
	if few := expect.Samples(5, 50); lock.Taken < few || unlock.Taken < few {
		t.Errorf("%d times a free lock, %d times a lone holder", lock.Taken, unlock.Taken)
	}
}

func newWalk(t *testing.T, seed uint64, lock, unlock *model.Shortcut) *model.Walk {
	t.Helper()
	rdb := shared.Client(t)
	key := "{walk-" + rand.Text() + "}"
	modelled := func(name string) *script.Script { return script.New(model.Modelled(text("fields") + whole(name))) }
	renew, revoke := modelled("renew"), modelled("revoke")
	w := &model.Walk{T: t, Redis: rdb, Rand: mrand.New(mrand.NewPCG(seed, 2)), Keys: keysOf(key)}
	w.Call = func() (script.Call, *model.Shortcut) {
		id, ttl := fmt.Sprint("id", w.Rand.IntN(4)), ms(1000+w.Rand.Int64N(3)*3000)
		if holder := rdb.HGet(t.Context(), key, "token").Val(); holder != "" && w.Rand.IntN(2) == 0 {
			id = holder
		}
		c := &calls{keys: keysOf(key), id: id, token: id}
		if w.Rand.IntN(5) == 0 {
			c.token = "owner"
		}
		switch p := w.Rand.IntN(100); {
		case p < 45:
			grace := queue.Grace(ttl)
			if w.Rand.IntN(2) == 0 {
				grace = 0
			}
			return c.asking(ttl, grace, queue.Unlimited, ""), lock
		case p < 90:
			h := successor{}
			if w.Rand.IntN(5) == 0 {
				h = successor{id: "successor", ttl: ttl, first: w.Rand.IntN(2) == 0}
			}
			return c.releasing(h, w.Rand.IntN(5) == 0), unlock
		case p < 97:
			call := c.renewal(ttl, 0)
			call.Script = renew
			return call, nil
		}
		call := revoking(key, "told")
		call.Script = revoke
		return call, nil
	}
	return w
}

func TestLeasesAndLockersAreLikeThoseOfAllLocks(t *testing.T) {
	t.Parallel()
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
