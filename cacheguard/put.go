package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/script"
)

// Put is Update for a write that returns the new value of the source. Put stores this value in the step that ends the
// update, so that the first Get afterwards is a hit. TTL, Jitter and StaleFor apply as they do to a load.
//
// Everything said of Update holds, also for the error. Nothing is stored, and the key is merely invalidated, if write or
// Put fails, the lock is lost, write takes longer than UpdateTimeout, something else invalidates the key while write runs,
// or Redis refuses the value. With UpdateAnyway and without Redis, nothing is stored either.
func (c *Cache[K, V]) Put(ctx context.Context, k K, write func(context.Context) (V, error)) error {
	if c == nil {
		return notCalled(errNilCache)
	}
	key := c.Key(k)
	if write == nil {
		return notCalled(fmt.Errorf("cacheguard: put %q: write is nil", key))
	}
	if key == "" {
		return notCalled(errEmptyKey)
	}
	spec := loadSpec[V]{policy: &c.policy, kind: c.policy.kind.name, load: c.loader(k)}
	if c.hasTags() {
		spec.tags = c.tagger(k)
	}
	p := &putting{rebuild: c.guard.newRebuild(spec.job(c.guard, key, scope{}, nil), nil, nil)}
	return c.guard.update(ctx, []string{key}, p, func(ctx context.Context) error {
		start := time.Now()
		v, err := write(ctx)
		if err == nil {
			p.written = &loaded{value: &v, took: time.Since(start), ttl: unset}
			if p.rebuild.job.tags != nil {
				p.written.tags = p.rebuild.job.tags(&v)
			}
		}
		return err
	})
}

// putting is the value that an update of one key stores at its end.
type putting struct {
	rebuild    *rebuild // as it would store a load
	generation string   // what the update must find at its end, as the proof that nothing was invalidated in between
	written    *loaded  // what write returned; nil: nothing is to be stored
}

// begin announces the update, and reads the epochs that the value will be stamped with.
func (p *putting) begin(ctx context.Context, u *update) error {
	g, job := u.guard, p.rebuild.job
	lasting := g.cfg.UpdateTimeout
	if lasting == off {
		lasting = time.Hour
	}
	epochs := p.rebuild.asked(ctx)
	epochs.Prepare(ctx)
	cmd, err := g.invalidations.forgetOne(ctx, "update", job.key,
		g.keys.BeginPut(job.valueKey, u.token, g.invalidations.notice(job.key), lasting))
	if err != nil {
		return err
	}
	p.generation, _ = cmd.Text()
	epochs.Ready(ctx)
	return nil
}

// end ends the update, and stores the written value if it may.
func (p *putting) end(ctx context.Context, u *update) map[string]*RedisError {
	g, key, valueKey := u.guard, p.rebuild.job.key, p.rebuild.job.valueKey
	notice := g.invalidations.notice(key)
	call := g.keys.EndUpdate(valueKey, u.token, notice)
	if p.written != nil && ctx.Err() == nil {
		if f := p.filling(ctx); f.TTL > 0 {
			call = g.keys.Put(valueKey, u.token, notice, f)
		}
	}
	cmd, err := g.invalidations.forgetOne(ctx, "invalidate", key, call)
	if err != nil {
		return map[string]*RedisError{key: err}
	}
	switch status, err := cmd.Text(); {
	case err != nil, status == protocol.Stored: // an error: nothing was to be stored, and the reply is a number
	case status == protocol.Refused:
		g.cfg.Hooks.rejected(key)
	default:
		g.onUnstorable(ctx, p.rebuild.job, errors.New(status))
	}
	return nil
}

// filling is what is to be stored; without a TTL, nothing is.
func (p *putting) filling(ctx context.Context) (f protocol.Filling) {
	r := p.rebuild
	stamp, refused := r.stamp(ctx, r.asked(ctx), p.written.tags)
	if errors.Is(refused, epoch.ErrUnproven) {
		r.guard.cfg.Hooks.rejected(r.job.key)
		return f
	}
	return r.prepare(ctx, *p.written, p.generation, stamp, refused)
}

// forgetOne is forget for one call, and returns its reply.
func (i *invalidations) forgetOne(ctx context.Context, op, key string, call *script.Call) (*redis.Cmd, *RedisError) {
	defer i.forgetLocal([]string{key}) // also after an error, as Redis may have removed the key
	cmd, err := i.guard.writeOne(ctx, call)
	if err != nil {
		i.guard.health.Failed(err)
		return nil, i.guard.redisError(op, key, err)
	}
	return cmd, nil
}
