package cacheguard

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
)

// unreachable answers when Redis could not be asked for the lease. The reply may be all that was lost.
func (r *rebuild) unreachable(ctx context.Context, err error) answer {
	r.finishWait(nil)
	r.recall(err)
	reason := r.guard.redisError("acquire", r.job.key, err)
	if r.guard.cfg.FailClosed {
		return answer{err: reason}
	}
	if r.afterBypass {
		return r.guard.loadDirectly(ctx, r.job, Bypassed)
	}
	return r.guard.loadBypassed(ctx, r.job, r.publish)
}

// recall gives back a lease that may have been granted without a reply.
func (r *rebuild) recall(err error) {
	if !errors.Is(err, health.ErrOpen) {
		r.guard.life.Go(r.giveUp) // nobody waits for it; stop: RedisTimeout and the client's time-outs; joined by Close
	}
}

// tooLate gives back a lease that may have been granted after its flight stopped waiting for the reply.
func (r *rebuild) tooLate(cmd *redis.Cmd, err error) {
	if err == nil {
		got, unclear := protocol.ParseAcquired(cmd)
		if unclear == nil && got.Status != protocol.Granted {
			return
		}
	}
	_ = r.guard.life.Try(r.giveUp) // stop: RedisTimeout. If the Guard is closed, the lease expires.
}

// giveUp releases the lease, also when the flight's context has ended.
func (r *rebuild) giveUp() {
	// If this fails too, the lease expires.
	_, _ = r.guard.link.Do(context.Background(), r.job.valueKey, &link.Call{Script: r.guard.keys.Release(r.job.valueKey, r.token), Rank: link.EndsWork})
}
