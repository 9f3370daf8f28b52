package cacheguard

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
)

// readFirst is how far away Redis is at most if a load reads before it asks for its lease.
const readFirst = time.Millisecond

// How long after a lease could not be given up that is tried again: then twice as long each time.
const (
	givenUpAgain   = 50 * time.Millisecond
	longestGivenUp = 400 * time.Millisecond
)

// request is what the rebuild asks for: the lease if it has a slot.
func (r *rebuild) request() protocol.Request {
	return protocol.Request{Token: r.token, Take: !r.slot.IsNone(), Unfit: r.unfit, Aged: r.aged, After: r.after}
}

// acquire asks Redis. If the flight ends before the reply, it gives back a lease that was granted. If a flight may not
// take the lease, it first asks whether there is anything at all: in a process at its limit there mostly is not, and
// the question costs Redis a third of the script.
func (r *rebuild) acquire(ctx context.Context, request protocol.Request) (protocol.Acquired, error) {
	g, valueKey := r.guard, r.load.valueKey
	if b := r.load.batch; b != nil {
		select {
		case b.scriptSlots <- struct{}{}:
			defer func() { <-b.scriptSlots }()
		case <-ctx.Done():
			return protocol.Acquired{}, context.Cause(ctx)
		}
	}
	if !request.Take && request.Unfit == nil && request.After == "" && g.plain {
		cmd, err := g.link.Do(ctx, valueKey, &send.Call{Script: g.keys.Exists(valueKey), Rank: send.Ordinary})
		if err != nil || cmd.Val() == int64(0) {
			return protocol.Acquired{Status: protocol.Free}, err
		}
	}
	if r.waited && request.Take && request.Unfit == nil {
		if raw := r.stored(ctx); len(raw) > 0 {
			return protocol.Acquired{Status: protocol.HasValue, Value: raw}, nil
		}
	}
	rank := send.Ordinary
	if r.slot.IsOwn() {
		rank = send.HoldsSlot
	}
	if request.Take {
		r.prepareLoad(ctx)
	}
	asked := g.cfg.clock.Now()
	r.acquired = time.Now()
	cmd, err := g.link.Do(ctx, valueKey, &send.Call{Script: g.keys.Acquire(valueKey, request), Rank: rank, Late: r.tooLate})
	if err != nil {
		return protocol.Acquired{}, err
	}
	g.journal.RedisDid("acquire")
	got, err := protocol.ParseAcquired(cmd)
	if r.waited && err == nil {
		g.loaders.meanwhile.Found(got.Status == protocol.HasValue)
	}
	if !got.FreshAt.IsZero() {
		g.serverClocks.Note(r.load.key, got.FreshAt, asked)
	}
	return got, err
}

// stored reads what another instance may have stored while this one waited for its slot, with the epochs that judge it.
// In a cold start of a fleet that is most keys, and a read costs Redis a tenth of the script. Where Redis is far, or
// nobody else loads, the script asks at once.
func (r *rebuild) stored(ctx context.Context) []byte {
	g, valueKey := r.guard, r.load.valueKey
	if g.loaders.meanwhile.Expected() || g.link.Shortest(valueKey) > readFirst {
		return nil
	}
	epochs := r.load.reading(g)
	read, err := g.link.Get(ctx, valueKey, epochs.Keys()...)
	if err != nil || read.Err != nil {
		return nil // the script will say why
	}
	epochs.Take(read)
	r.epochs = &epochs
	if read.Raw != nil {
		g.loaders.meanwhile.Found(true)
	}
	return read.Raw
}

// asked returns epochs that were asked for in this attempt, after its tick: they judge a value that others loaded.
func (r *rebuild) asked(ctx context.Context) *epoch.Reading {
	if r.epochs == nil {
		epochs := r.load.reading(r.guard)
		epochs.Ask(ctx)
		r.epochs = &epochs
	}
	return r.epochs
}

// prepareLoad begins to ask for the epochs under which the load is made. Those of the call that began the flight serve,
// unless a value is replaced.
func (r *rebuild) prepareLoad(ctx context.Context) {
	if r.under = r.load.epochs; r.epochs != nil || r.under == nil || r.load.anew != nil {
		r.under = r.asked(ctx) // also to see whether what is replaced is still valid
	}
	r.under.Prepare(ctx)
}

// recall gives back a lease that may have been granted without a reply.
func (r *rebuild) recall(err error) {
	if mayHave(err) {
		r.guard.life.Go(r.giveUp) // nobody waits for it; stop: RedisTimeout and the client's time-outs; joined by Close
	}
}

// tooLate gives back a lease that may have been granted after its flight stopped waiting for the reply.
func (r *rebuild) tooLate(reply send.Reply, err error) {
	if err == nil {
		got, unclear := protocol.ParseAcquired(reply.Cmd)
		if unclear == nil && got.Status != protocol.Granted {
			return
		}
	} else if !mayHave(err) {
		return
	}
	_ = r.guard.life.Try(r.giveUp) // stop: RedisTimeout. If the Guard is closed, the lease expires.
}

// mayHave reports whether the lease may have been granted all the same.
func mayHave(err error) bool {
	_, answered := script.Answer(err)
	return !answered && !errors.Is(err, breaker.ErrOpen)
}

// giveUp releases the lease, also when the flight's context has ended. If that fails, it goes on in the background:
// else all instances would wait for a load that is over.
func (r *rebuild) giveUp() {
	g, giving := r.guard, send.Giving{Worth: r.guard.cfg.LeaseTTL}
	attempt := func() bool {
		_, err := g.link.Do(context.Background(), r.load.valueKey, &send.Call{Script: g.keys.Release(r.load.valueKey, r.token), Rank: send.EndsWork})
		return giving.Over(err)
	}
	if attempt() {
		return
	}
	g.life.Go(func() { // stop: as Giving says, or the end of the Guard, which waits for no more attempts; joined by Close
		g.life.Until(givenUpAgain, longestGivenUp, func() bool { return g.life.Ending.Err() != nil || attempt() })
	})
}

// confirm asks whether an entry is valid. If it is not, it will be overwritten. Epochs that were read before the entry
// may be too old to know one that its load made.
func (r *rebuild) confirm(ctx context.Context, raw []byte, stamp protocol.Stamp) (a answer, done, valid bool) {
	early := r.epochs != nil
	holds, redisErr, err := r.asked(ctx).Check(ctx, stamp)
	if early && !holds && err == nil {
		r.epochs = nil
		holds, redisErr, err = r.asked(ctx).Check(ctx, stamp)
	}
	switch {
	case err != nil:
		return abandoned(ctx), true, false
	case redisErr != nil:
		return r.unreachable(ctx, redisErr), true, false
	case !holds:
		r.unfit, r.aged = raw, false
		r.askedAgain++
		r.load.forgetOld()
		return answer{}, false, false
	}
	return answer{}, false, true
}

// use makes the answer of an entry. One that cannot be used will be overwritten.
func (r *rebuild) use(ctx context.Context, raw []byte, how Outcome, before uint64) (answer, bool) {
	e, value, err := r.load.decode(&r.guard.cfg, raw)
	switch {
	case err != nil && e.Kind == 0:
		r.guard.tell(ctx, EventDamaged, r.load.key, err)
	case err != nil && r.guard.undecodable(r.load.key, r.load.policy, e, err) == alienEntry:
		return r.guard.loadDirectly(ctx, r.load, Loaded), true
	}
	age := fresh
	if err == nil && how != Shared {
		age = r.guard.freshness(r.load.key, r.load.policy, e)
	}
	if err == nil && age != expired {
		if a, done, valid := r.confirm(ctx, raw, e.Stamp); !valid {
			return a, done
		}
	}
	switch {
	case err != nil || age == expired:
		r.unfit, r.aged = r.guard.cfg.packing().Unfit(raw), err == nil
		r.load.forgetOld() // another value has taken its place
		return answer{}, false
	case age != fresh:
		return answer{}, true // good for nobody: a call that reads such a value replaces it, too
	}
	if e.Kind == protocol.Absent {
		return answer{err: ErrNotFound, absent: true, outcome: Negative, before: before, origin: r.origin}, true
	}
	return answer{value: value, outcome: how, before: before, origin: r.origin}, true
}
