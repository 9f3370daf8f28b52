package cacheguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
)

// lead loads the value and stores it, and renews the lease until Redis has answered. If the lease is lost all the same,
// the load goes on: its callers want the value, and if nothing was written in between it may still be stored. (If it
// were cancelled, two instances with failing renewals and a loader slower than the lease would take the lease from each
// other for ever.)
//
// Callers that began before the loader did get the answer as soon as it returns. The others get it when Redis has
// confirmed that nothing was written since.
func (r *rebuild) lead(ctx context.Context, got protocol.Acquired) answer {
	if got.TakenOver {
		r.guard.tell(ctx, EventTakeover, r.load.key, nil)
	}
	if !got.Unfit {
		r.load.forgetOld()
	}
	over := false // also if the user's code ends this goroutine
	defer func() {
		if !over {
			r.guard.life.Go(r.giveUp) // nobody waits for it; stop: RedisTimeout and the client's time-outs; joined by Close
		}
	}()
	defer r.keep()()
	if r.slot.IsNone() {
		if a, ok := r.takeSlot(ctx); !ok {
			return a
		}
	}
	if r.under.Ready(ctx); !r.mayShowOld() {
		r.load.forgetOld()
	}
	r.joined, r.load.encode = flight.WaitersOf(ctx).Entered(), r.encode
	began := r.guard.clock.Tick()
	out := r.guard.loaders.run(ctx, r.load, r.slot)
	a := out.answer(Loaded, began)
	if out.again { // who came after that was asked for may have come after an invalidation
		began, a.before = r.shownBefore, r.shownBefore
	}
	a.loaded = r.guard.clock.Tick()
	if over = out.err == nil || ctx.Err() == nil; !over { // nobody waits any more
		return abandoned(ctx)
	}
	switch {
	case a.cancelled || r.guard.loaders.isOwn(out.err):
		r.publish(a)
		r.giveUp()
	case out.err != nil && !out.absent:
		a.brief, a.before = r.load.policy.failureTTL == 0, a.loaded
		r.publish(a)
		r.rememberFailure(out)
	default:
		r.publish(a)
		a.before, a.unstored = r.store(ctx, out, got.Generation, began, a.loaded)
	}
	return a
}

// keep renews the lease until drop is called.
func (r *rebuild) keep() (drop func()) {
	l := &leading{rebuild: r}
	l.since.Store(&r.acquired)
	renewal := &lease.Renewal{Lease: l, TTL: r.guard.cfg.LeaseTTL}
	r.guard.keeper.Keep(renewal)
	return func() { r.guard.keeper.Drop(renewal) }
}

// leading is a rebuild as its keeper sees it.
type leading struct {
	*rebuild

	since atomic.Pointer[time.Time] // before the lease was last acquired or renewed
}

func (l *leading) Due() script.Call           { return l.guard.keys.Renew(l.load.valueKey, l.token) }
func (l *leading) Kept(sent time.Time, _ int) { l.since.Store(&sent) }

// Lost tells why: as long as nobody could take the lease over, a write has removed it, unless Redis has lost its data.
func (l *leading) Lost(int) {
	what, since := EventLeaseLost, *l.since.Load()
	if max(time.Since(since), time.Since(since.Round(0))) < l.guard.cfg.LeaseTTL { // by the wall clock, too: a machine may be suspended
		what = EventOvertaken
	}
	l.guard.tellBeside(Event{What: what, Key: l.load.key})
}

// rememberFailure ends the lease and leaves the failure in Redis for the other instances.
func (r *rebuild) rememberFailure(out loaded) {
	r.guard.loaders.failures.Add(r.token, out.err, r.guard.cfg.clock.Now())
	fail := r.guard.keys.Fail(r.load.valueKey, r.token, out.text, r.load.policy.failureTTL)
	// Not ctx: all callers have the error by now, and may have left.
	_, err := r.guard.link.Do(context.Background(), r.load.valueKey, &send.Call{Script: fail, Rank: send.EndsWork})
	if err != nil {
		_ = r.guard.redisError("fail", r.load.key, err)
		r.guard.life.Go(r.giveUp) // nobody waits for it; stop: as giveUp says; joined by Close
	} else {
		r.guard.journal.RedisDid("fail")
	}
}

// store stores what was loaded. The value is good for calls that began before the tick that store returns. If the load
// may be stored, no write overtook it until the fill was sent, so the value is good for all calls that began before
// that; if it is not, for those that began before the loader had returned. Otherwise it is good only for calls that
// began before the loader did. The error says why it is not stored, unless its TTL does.
func (r *rebuild) store(ctx context.Context, out loaded, generation string, began, returned uint64) (before uint64, unstored error) {
	ctx = context.WithoutCancel(ctx)
	stamp, refused := r.stamp(ctx, &out)
	if errors.Is(refused, epoch.ErrUnproven) {
		r.guard.tell(ctx, EventRejected, r.load.key, nil)
		r.giveUp()
		return began, errRejected
	}
	refused = cmp.Or(refused, out.refused)
	f := r.prepare(ctx, out, generation, stamp, refused)
	sent := r.guard.clock.Tick()
	prove := r.proof(ctx, stamp)
	cmd, err := r.guard.link.Do(ctx, r.load.valueKey, &send.Call{
		Script: r.guard.keys.Fill(r.load.valueKey, f), Rank: send.EndsWork, Size: len(f.Tail),
	})
	proven := prove()
	if err != nil {
		r.guard.life.Go(r.giveUp) // nobody waits for it; stop: RedisTimeout and the client's time-outs; joined by Close
		return began, r.guard.redisError("fill", r.load.key, err)
	}
	r.guard.journal.RedisDid("fill")
	switch status, _ := cmd.Text(); status {
	case protocol.Refused:
		r.guard.tell(ctx, EventRejected, r.load.key, nil)
		return began, errRejected
	case protocol.Stored:
		r.guard.counts.written.Add(uint64(len(f.Head) + len(f.Tail)))
	case protocol.Kept:
		sent = returned
	default:
		sent, refused = returned, errors.New(status)
		r.guard.tell(ctx, EventUnstorable, r.load.key, refused, r.load.policy.logAttrs()...)
	}
	if !proven {
		return began, refused // a tag was invalidated in the meantime, or nobody knows
	}
	return sent, refused
}

// mayShowOld reports whether the loader may see the entry that it is to replace.
func (r *rebuild) mayShowOld() bool {
	if r.unfit == nil || r.load.anew == nil {
		return true
	}
	e, err := protocol.DecodeEntry(r.load.key, r.unfit)
	r.load.made = e.Stamp
	return err != nil || r.under.Confirms(e.Stamp) // an error: nobody could read it
}

// stamp returns the stamp of what was loaded after the epochs were ready. What is stored again keeps the one that it
// was made under; if nobody knows that, it is never valid. With an error, which says why it is not stored, the stamp
// may be good for those who wait: it has the tags that can be invalidated, as long as they fit into a message.
func (r *rebuild) stamp(ctx context.Context, out *loaded) (protocol.Stamp, error) {
	var made protocol.Stamp
	if out.again {
		made = r.load.made
	}
	had := made.Tags.Names()
	tags := union(r.load.known, out.tags, had)
	refused := checkTags(tags)
	if len(tags) > 2*maxTags {
		out.untold = true
		return made, refused
	}
	tags = slices.DeleteFunc(tags, func(tag string) bool { return slices.Contains(had, tag) || checkTag(tag) != nil })
	stamp, err := r.under.Stamp(ctx, tags)
	out.untold = out.untold || err != nil
	if out.again {
		made.Tags = append(made.Tags, stamp.Tags...)
		stamp = made
	}
	return stamp, cmp.Or(err, refused)
}

// proof begins to ask whether the stamp is still valid, if anybody joined after the load began, and returns a function
// that tells.
func (r *rebuild) proof(ctx context.Context, stamp protocol.Stamp) func() bool {
	if flight.WaitersOf(ctx).Entered() == r.joined {
		return func() bool { return false }
	}
	proof := r.under.Prove(ctx, stamp)
	return func() bool {
		ctx, cancel := context.WithTimeout(ctx, 2*r.guard.cfg.RedisTimeout) // one for the queue
		defer cancel()
		holds, redisErr, err := proof.Check(ctx, stamp)
		return holds && redisErr == nil && err == nil
	}
}

// encode encodes what was loaded, before its callers have it, who may change it, and whether it is to be stored or not:
// others may wait for it.
func (r *rebuild) encode(out *loaded) {
	p := r.load.policy
	out.what, out.payload, out.refused = r.load.shape.Encode(p.codec, out.value)
	if out.untold = out.refused != nil; out.untold {
		return
	}
	if limit := r.guard.cfg.MaxValueBytes; limit > 0 && len(out.payload) > limit {
		out.refused = fmt.Errorf("its %d bytes are more than MaxValueBytes (%d)", len(out.payload), limit)
	}
	if env := r.guard.rehearsal; env != nil && out.refused == nil && out.what == protocol.Coded {
		out.refused = env.Check(r.load.key, p.codec, out.value)
		out.untold = out.refused != nil
	}
}

// prepare makes the entry, also of what is not stored, for those who wait: there is none if it cannot be encoded,
// nobody could tell whether it is valid, or no message has room for it. They load then.
func (r *rebuild) prepare(ctx context.Context, out loaded, generation string, stamp protocol.Stamp, refused error) protocol.Filling {
	f, p := protocol.Filling{Token: r.token, Generation: generation}, r.load.policy
	what, ttl, staleFor := protocol.Absent, min(p.negativeTTL, out.ttl), time.Duration(0)
	if out.err == nil {
		what, ttl, staleFor, refused = out.what, p.ttl, p.staleFor, cmp.Or(refused, out.refused)
		if out.ttl != unset {
			ttl = out.ttl
		}
	}
	if refused != nil && (ttl > 0 || out.untold) {
		r.guard.tell(ctx, EventUnstorable, r.load.key, refused, p.logAttrs()...)
	}
	if refused != nil {
		ttl = 0
	}
	ttl -= time.Duration(float64(ttl) * p.jitter * rand.Float64())
	if ttl > 0 {
		f.TTL = ttl + staleFor
	}
	if out.untold {
		return f
	}
	freshFor := ttl
	if staleFor == 0 && p.earlyRefresh == 0 && r.guard.local == nil {
		freshFor = 0
	}
	e := protocol.Entry{Kind: what, Fresh: freshFor, Took: out.took, Version: p.kind.version, Stamp: stamp, Payload: out.payload}
	if refused == nil {
		e = r.pack(ctx, e)
	}
	if f.TTL > 0 || len(e.Payload) <= protocol.MaxPushed {
		f.Head, f.Tail = protocol.EncodeEntry(r.load.key, e, r.token)
	}
	return f
}

// pack compresses the payload of an entry, if that can be done.
func (r *rebuild) pack(ctx context.Context, e protocol.Entry) protocol.Entry {
	e, err := r.guard.cfg.packing().Pack(e, r.unfit)
	if err != nil {
		r.guard.tell(ctx, EventUncompressed, r.load.key, err)
	}
	return e
}
