package cacheguard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/guess"
	whyoff "github.com/cacheguard/go/internal/cache/off"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/serverclock"
	"github.com/cacheguard/go/internal/cache/testenv"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/watch"
)

// Redis is what a Guard needs of a client: *redis.Client (also a Sentinel failover client), *redis.ClusterClient and
// *redis.Ring have it. Config.Local, and Update and Put without a WriteLock, refuse a Ring. The Guard never configures
// or closes the client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// Guard is a read-through cache in front of a slow source. It is safe for concurrent use.
type Guard struct {
	rdb   Redis
	cfg   Config
	keys  protocol.Keyspace
	plain bool // the client sends any command as it is; one for a cluster may split it by key, or refuse it in a pipeline

	// The way of a Get.
	clock    flight.Clock
	local    *tier.Local  // nil: there is no such tier
	expected guess.Misses // of reads
	ordinary policy       // of entries of no Cache
	kinds    kinds
	off      whyoff.Switch
	link     *send.Link
	flights  flight.Group[flightKey, answer]
	loaders  loaders

	// What goes on beside it.
	epochs       *epoch.Epochs
	writes       write.Writes
	notices      *tier.Notices
	locks        *rw.Locker // of Update; nil: on a Ring, it has none
	observers    observers
	journal      watch.Journal
	counts       counts
	filling      atomic.Int64 // reads for the local tier alone
	dropping     atomic.Int64 // values that are too large to be read and are being removed: one at a time
	inbox        *wake.Inbox
	keeper       *lease.Keeper
	breakers     *breaker.Set
	serverClocks *serverclock.Clocks

	rehearsal testenv.Env // nil: this is no test's

	// The end.
	life    *lifecycle.Life // calls, loaders, and operations that may outlast the call that started them
	leave   func()          // gives up the inbox and the keeper
	closing sync.Once
}

// begin begins a call, of a Guard that may be nil. Each nil is followed by one life.Done.
func (g *Guard) begin() error {
	switch {
	case g == nil:
		return errNilGuard
	case !g.life.Begin():
		return ErrClosed
	}
	return nil
}

// partOf is the part of the keyspace that a key belongs to. Parts fail one by one, and have clocks of their own.
func (g *Guard) partOf(key string) int { return g.breakers.Part(g.keys.ValueKey(key)) }

func (g *Guard) breakerOf(key string) *breaker.Breaker { return g.breakers.Breaker(g.partOf(key)) }

// serverTime asks the server that has the key for its time.
func (g *Guard) serverTime(key string) (time.Time, error) {
	call := g.keys.Time(g.keys.ValueKey(key))
	millis, err := bounded(context.Background(), g, func(ctx context.Context) (int64, error) {
		return call.Run(ctx, g.rdb).Int64()
	})
	return time.UnixMilli(millis), err
}

// bounded runs an operation on Redis under RedisTimeout, see package lifecycle. An operation that is given up runs on
// in the background. Only flights and begun tasks may call bounded, because Close waits for them first.
func bounded[T any](ctx context.Context, g *Guard, op func(context.Context) (T, error)) (T, error) {
	return lifecycle.Bounded(context.WithoutCancel(ctx), g.life, g.cfg.RedisTimeout, op)
}
