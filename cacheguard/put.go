package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/errs"
)

// Put is Update for a write that returns the new value of the source, and stores it in the step that ends the update,
// so that the first Get afterwards is a hit. TTL, Jitter, StaleFor and Tags apply as to a load, and write can use
// SetTags and SetTTL. Where that cannot be, as something else invalidates the key meanwhile, the key is merely
// invalidated.
func (c *Cache[K, V]) Put(ctx context.Context, k K, write func(context.Context) (V, error)) error {
	if c == nil {
		return notCalled(errNilCache)
	}
	key := c.Key(k)
	if write == nil {
		return notCalled(fmt.Errorf("cacheguard: put %q: write is nil", errs.Short(key)))
	}
	if key == "" {
		return notCalled(errEmptyKey)
	}
	spec := c.specOf(k)
	mayStore := !scopeOf(ctx, c.guard).isTransactions() // one around this write, which may be rolled back
	p := &putting{rebuild: newRebuild(c.guard, spec.loadOf(c.guard, key, scope{}, nil), nil, nil)}
	return c.guard.update(ctx, []string{key}, p, func(ctx context.Context) error {
		start := time.Now()
		made := newLoading(ctx, nil, c.policy.kind)
		v, err := write(context.WithValue(ctx, loadingKey{}, made))
		if err == nil && mayStore && !c.guard.off.Bypassed() {
			p.written = &loaded{value: &v, took: time.Since(start), ttl: made.chosen(), tags: made.allTags()}
			if p.load.tags != nil {
				p.written.tags = append(p.written.tags, p.load.tags(&v)...)
			}
			c.guard.journal.Tags.Written(p.written.tags...)
			p.encode(p.written)
		}
		return err
	})
}

// putting is the value that an update of one key stores at its end, as it would store a load.
type putting struct {
	*rebuild
	written *loaded // what write returned; nil: nothing is to be stored
}

func (p *putting) Key() string               { return p.load.valueKey }
func (p *putting) Asked(ctx context.Context) { p.under.Ready(ctx) }

func (p *putting) Ask(ctx context.Context) {
	p.epochs = nil
	p.prepareLoad(ctx)
}

// Report tells the hooks what came of the value.
func (p *putting) Report(ctx context.Context, status string, err error) {
	switch {
	case err != nil, status == protocol.Stored:
	case status == protocol.Refused:
		p.guard.tell(ctx, EventRejected, p.load.key, nil)
	default:
		p.guard.tell(ctx, EventUnstorable, p.load.key, errors.New(status), p.load.policy.logAttrs()...)
	}
}

// Filling is what is to be stored; without a TTL, nothing is.
func (p *putting) Filling(ctx context.Context, generation string) (f protocol.Filling) {
	r := p.rebuild
	if p.written == nil || ctx.Err() != nil {
		return f
	}
	stamp, refused := r.stamp(ctx, p.written)
	if errors.Is(refused, epoch.ErrUnproven) {
		r.guard.tell(ctx, EventRejected, r.load.key, nil)
		return f
	}
	return r.prepare(ctx, *p.written, generation, stamp, refused)
}
