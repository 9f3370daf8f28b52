package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
)

// lead loads the value and stores it, and renews the lease until Redis has answered. If the lease is lost all the same, the
// load goes on: its callers want the value, and if nothing was written in between it may still be stored. (If it were
// cancelled, two instances with failing renewals and a loader slower than the lease would take the lease from each other for
// ever.)
//
// Callers that began before the loader did get the answer as soon as it returns. The others get it when Redis has
// confirmed that nothing was written since.
func (r *rebuild) lead(ctx context.Context, got protocol.Acquired) answer {
	if got.TakenOver {
		r.guard.tell(ctx, report.Takeover, r.job.key, nil)
	}
	if !got.Unfit {
		r.job.forgetOld()
	}
	renewal := &lease.Renewal{Lease: leading{r}, TTL: r.guard.cfg.LeaseTTL}
	r.guard.keeper.Keep(renewal)
	defer r.guard.keeper.Drop(renewal)
	epochs := r.beforeLoad(ctx)
	if epochs.Ready(ctx); !r.mayShowOld(epochs) {
		r.job.forgetOld()
	}
	r.joined, r.job.encode = flight.Entered(ctx), r.encode
	began := r.guard.clock.Tick()
	out := r.guard.loaders.run(ctx, r.job, r.slot)
	a := answer{
		value: out.value, err: out.err, absent: out.absent, outcome: Loaded, before: began, loaded: r.guard.clock.Tick(),
		origin: r.guard.cfg.Hooks.origin(ctx),
	}
	switch {
	case out.err != nil && ctx.Err() != nil: // nobody waits any more
		r.guard.life.Go(r.giveUp) // nobody waits for it; stop: RedisTimeout and the client's time-outs; joined by Close
		return answer{err: closedOr(context.Cause(ctx))}
	case out.err != nil && errors.Is(out.err, context.Canceled):
		a.cancelled = true
		r.publish(a)
		r.giveUp()
	case out.err != nil && !out.absent:
		r.publish(a)
		r.rememberFailure(out)
	default:
		r.publish(a)
		a.before = r.store(ctx, out, got.Generation, began)
	}
	return a
}

// leading is a rebuild as its keeper sees it.
type leading struct{ *rebuild }

func (r leading) Due() script.Call    { return r.guard.keys.Renew(r.job.valueKey, r.token) }
func (r leading) Kept(time.Time, int) {}
func (r leading) Lost(int) {
	r.guard.tell(context.Background(), report.LeaseLost, r.job.key, nil)
}

// rememberFailure ends the lease and leaves the failure in Redis for the other instances.
func (r *rebuild) rememberFailure(out loaded) {
	r.guard.failures.Add(r.token, out.err, r.guard.cfg.clock.Now())
	// Not ctx: all callers have the error by now, and may have left. If this fails, the lease expires.
	_, err := r.guard.link.Do(context.Background(), r.job.valueKey, &send.Call{Script: r.guard.keys.Fail(r.job.valueKey, r.token, out.text), Rank: send.EndsWork})
	if err != nil {
		_ = r.guard.redisError("fail", r.job.key, err)
	}
}

// store stores what was loaded. The value is good for calls that began before the tick that store returns. If the load may be
// stored, no write overtook it until the fill was sent, so the value is good for all calls that began before that. Otherwise
// it is good only for calls that began before the loader did.
func (r *rebuild) store(ctx context.Context, out loaded, generation string, began uint64) (before uint64) {
	ctx = context.WithoutCancel(ctx)
	epochs := r.beforeLoad(ctx)
	stamp, refused := r.stamp(ctx, epochs, out.tags)
	if errors.Is(refused, epoch.ErrUnproven) {
		r.guard.tell(ctx, report.Rejected, r.job.key, nil)
		r.giveUp()
		return began
	}
	f := r.prepare(ctx, out, generation, stamp, refused)
	sent := r.guard.clock.Tick()
	prove := r.proof(ctx, epochs, stamp)
	cmd, err := r.guard.link.Do(ctx, r.job.valueKey, &send.Call{
		Script: r.guard.keys.Fill(r.job.valueKey, f), Rank: send.EndsWork, Size: len(f.Tail),
	})
	proven := prove()
	if err != nil {
		r.guard.life.Go(r.giveUp)                      // nobody waits for it; stop: RedisTimeout and the client's time-outs; joined by Close
		_ = r.guard.redisError("fill", r.job.key, err) // the callers have the value
		return began
	}
	switch status, _ := cmd.Text(); status {
	case protocol.Refused:
		r.guard.tell(ctx, report.Rejected, r.job.key, nil)
		return began
	case protocol.Stored:
		r.guard.written.Add(uint64(len(f.Head) + len(f.Tail)))
	case protocol.Kept:
	default:
		r.guard.tell(ctx, report.Unstorable, r.job.key, errors.New(status), r.job.policy.logAttrs()...)
	}
	if !proven {
		return began // a tag was invalidated in the meantime, or nobody knows
	}
	return sent
}

// mayShowOld reports whether the loader may see the entry that it is to replace.
func (r *rebuild) mayShowOld(epochs *epoch.Reading) bool {
	if r.unfit == nil || r.job.anew == nil {
		return true
	}
	e, err := protocol.DecodeEntry(r.job.key, r.unfit)
	return err != nil || epochs.Confirms(e.Stamp) // an error: nobody could read it
}

// stamp returns the stamp of what was loaded after the epochs were ready.
func (r *rebuild) stamp(ctx context.Context, epochs *epoch.Reading, of []string) (protocol.Stamp, error) {
	tags := union(r.job.known, of)
	if err := checkTags(tags); err != nil {
		return protocol.Stamp{}, err
	}
	return epochs.Stamp(ctx, tags)
}

// proof begins to ask whether the stamp is still valid, if anybody joined after the load began, and returns a function that tells.
func (r *rebuild) proof(ctx context.Context, epochs *epoch.Reading, stamp protocol.Stamp) func() bool {
	if flight.Entered(ctx) == r.joined {
		return func() bool { return false }
	}
	proof := epochs.Prove(ctx, stamp)
	return func() bool {
		ctx, cancel := context.WithTimeout(ctx, 2*r.guard.cfg.RedisTimeout) // one for the queue
		defer cancel()
		holds, redisErr, err := proof.Check(ctx, stamp)
		return holds && redisErr == nil && err == nil
	}
}

// encode encodes what was loaded, before its callers have it, who may change it. Some values are decoded again, and compared.
func (r *rebuild) encode(ctx context.Context, out *loaded) {
	p := r.job.policy
	out.what, out.payload, out.refused = r.job.shape.Encode(p.codec, out.value)
	if limit := r.guard.cfg.MaxValueBytes; out.refused == nil && limit > 0 && len(out.payload) > limit {
		out.refused = fmt.Errorf("its %d bytes are more than MaxValueBytes (%d)", len(out.payload), limit)
	}
	if out.refused != nil || out.what == protocol.Raw || !p.fidelity.Due() {
		return
	}
	back, err := r.job.shape.Decode(p.codec, protocol.Entry{Kind: out.what, Payload: out.payload})
	if err != nil {
		p.fidelity.Doubt()
		out.refused = fmt.Errorf("it cannot be decoded: %w", err)
		return
	}
	if path, what := fidelity.Difference(out.value, back, p.codec.Marshal); what != "" {
		is := report.AlteredAgain
		if p.fidelity.Tell() {
			is = report.Altered
		}
		r.guard.tell(ctx, is, r.job.key, nil, p.logAttrs("field", path, "problem", what)...)
	}
}

// prepare makes the entry. A value that cannot be stored makes none.
func (r *rebuild) prepare(ctx context.Context, out loaded, generation string, stamp protocol.Stamp, refused error) protocol.Filling {
	f, p := protocol.Filling{Token: r.token, Generation: generation}, r.job.policy
	if refused != nil {
		r.guard.tell(ctx, report.Unstorable, r.job.key, refused, p.logAttrs()...)
		return f
	}
	what, ttl, staleFor := protocol.Absent, min(p.negativeTTL, time.Duration(out.ttl)), time.Duration(0)
	if out.err == nil {
		if out.refused != nil {
			r.guard.tell(ctx, report.Unstorable, r.job.key, out.refused, p.logAttrs()...)
			return f
		}
		what = out.what
		ttl, staleFor = p.ttl, p.staleFor
		if out.ttl != unset {
			ttl = time.Duration(out.ttl)
		}
	}
	ttl -= time.Duration(float64(ttl) * p.jitter * rand.Float64())
	if ttl > 0 {
		f.TTL = ttl + staleFor
	}
	freshFor := ttl
	if staleFor == 0 && p.earlyRefresh == 0 && r.guard.local == nil {
		freshFor = 0
	}
	f.Head, f.Tail = protocol.EncodeEntry(r.job.key, r.pack(ctx, protocol.Entry{Kind: what, Fresh: freshFor, Took: out.took, Version: p.slot.version, Stamp: stamp, Payload: out.payload}), r.token)
	return f
}

// pack compresses the payload of an entry, if that can be done.
func (r *rebuild) pack(ctx context.Context, e protocol.Entry) protocol.Entry {
	e, err := r.guard.cfg.packing().Pack(e, r.unfit)
	if err != nil {
		r.guard.tell(ctx, report.Uncompressed, r.job.key, err)
	}
	return e
}
