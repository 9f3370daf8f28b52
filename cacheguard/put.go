package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/protocol"
)

// Put is Update for a write that returns the new value of the source. Put stores this value in the step that ends the
// update, so that the first Get afterwards is a hit. TTL, Jitter and StaleFor apply as they do to a load. The value has the tags that the Cache's
// Tags names, and write can use SetTags and SetTTL as a loader does: a Cache whose loader sets tags needs them here, too.
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
		made := newLoading(ctx, nil)
		v, err := write(context.WithValue(ctx, loadingKey{}, made))
		if err == nil {
			p.written = &loaded{value: &v, took: time.Since(start), ttl: made.ttl.Load(), tags: made.allTags()}
			if p.rebuild.job.tags != nil {
				p.written.tags = append(p.written.tags, p.rebuild.job.tags(&v)...)
			}
		}
		return err
	})
}

// putting is the value that an update of one key stores at its end.
type putting struct {
	rebuild    *rebuild  // as it would store a load
	generation string    // what the update must find at its end, as the proof that nothing was invalidated in between
	locked     time.Time // when the update had its lock, if it was taken together with the announcement
	written    *loaded   // what write returned; nil: nothing is to be stored
}

// lasting is for how long the proof is kept at most.
func (p *putting) lasting(g *Guard) time.Duration {
	if g.cfg.UpdateTimeout == off {
		return time.Hour
	}
	return g.cfg.UpdateTimeout
}

// begin announces the update, and reads the epochs that the value will be stamped with.
func (p *putting) begin(ctx context.Context, u *update) error {
	g, job := u.guard, p.rebuild.job
	epochs := p.rebuild.asked(ctx)
	epochs.Prepare(ctx)
	cmd, err := g.invalidations.ForgetOne(ctx, "update", job.key,
		g.keys.BeginPut(job.valueKey, u.token, g.invalidations.Notice(job.key), p.lasting(g)))
	if err != nil {
		return err
	}
	p.generation, _ = cmd.Text()
	epochs.Ready(ctx)
	return nil
}

// end ends the update, and stores the written value if it may.
func (p *putting) end(ctx context.Context, u *update) map[string]error {
	g, key, valueKey := u.guard, p.rebuild.job.key, p.rebuild.job.valueKey
	notice := g.invalidations.Notice(key)
	call := g.keys.EndUpdate(valueKey, u.token, notice)
	f := p.filling(ctx)
	if f.TTL > 0 {
		call = g.keys.Put(valueKey, u.token, notice, f)
	}
	cmd, err := g.invalidations.ForgetOne(ctx, "invalidate", key, call)
	if err != nil {
		return map[string]error{key: err}
	}
	if f.TTL > 0 {
		status, err := cmd.Text()
		p.report(ctx, status, err)
	}
	return nil
}

// report tells the hooks what came of the value.
func (p *putting) report(ctx context.Context, status string, err error) {
	switch {
	case err != nil, status == protocol.Stored:
	case status == protocol.Refused:
		p.rebuild.guard.cfg.Hooks.rejected(p.rebuild.job.key)
	default:
		p.rebuild.guard.onUnstorable(ctx, p.rebuild.job, errors.New(status))
	}
}

// filling is what is to be stored; without a TTL, nothing is.
func (p *putting) filling(ctx context.Context) (f protocol.Filling) {
	r := p.rebuild
	if p.written == nil || ctx.Err() != nil {
		return f
	}
	stamp, refused := r.stamp(ctx, r.asked(ctx), p.written.tags)
	if errors.Is(refused, epoch.ErrUnproven) {
		r.guard.cfg.Hooks.rejected(r.job.key)
		return f
	}
	return r.prepare(ctx, *p.written, p.generation, stamp, refused)
}
