package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/flight"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/send"
)

// readFirst is how far away Redis is at most if a load reads before it asks for its lease.
const readFirst = time.Millisecond

// rebuild is a flight that gets the value of a key through the lease: from another instance that loads, or with a load of
// its own.
type rebuild struct {
	guard       *Guard
	job         *job
	breaker     *breaker.Breaker
	token       string
	unfit       []byte       // what the cache has for the key but nobody can use; nil if nothing
	aged        bool         // it is unfit because it seems too old
	publish     func(answer) // gives the answer to the callers that it is good for
	slot        limit.Slot
	epochs      *epoch.Reading // asked for in this attempt; nil: not yet
	waited      bool           // for its slot: by now, another instance may have stored the value
	joined      int            // callers of the flight, when the load began
	afterBypass bool           // it has given up on Redis once: if that fails again, it loads without
	askedAgain  int            // how often it has had to ask again
	origin      string         // of the load that it waits for
	endWait     func(End)      // ends the task of waiting for another instance; nil: there is none
	patience    time.Time      // when WaitTimeout is over; zero: it has none
	waiters     *flight.Waiters
}

func (g *Guard) newRebuild(j *job, unfit []byte, publish func(answer)) *rebuild {
	return &rebuild{
		guard: g, job: j, breaker: g.breakers.Of(j.valueKey), token: rand.Text(), unfit: g.cfg.packing().Unfit(unfit), aged: j.aged, publish: publish,
	}
}

// request is what the rebuild asks for: the lease only if it has a slot.
func (r *rebuild) request() protocol.Request {
	return protocol.Request{Token: r.token, Take: !r.slot.IsNone(), Unfit: r.unfit, Aged: r.aged}
}

// acquire asks Redis. If the flight ends before the reply, it gives back a lease that was granted. If a flight may not take
// the lease, it first asks whether there is anything at all: in a process at its limit there mostly is not, and the question
// costs Redis a third of the script.
func (r *rebuild) acquire(ctx context.Context, request protocol.Request) (protocol.Acquired, error) {
	g, valueKey := r.guard, r.job.valueKey
	if r.job.batch != nil {
		done, err := r.job.batch.takeScriptSlot(ctx)
		if err != nil {
			return protocol.Acquired{}, err
		}
		defer done()
	}
	if !request.Take && request.Unfit == nil && g.plain {
		cmd, err := g.link.Do(ctx, valueKey, &send.Call{Script: g.keys.Exists(valueKey), Rank: send.Ordinary, Waiters: r.waiters})
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
		r.beforeLoad(ctx).Prepare(ctx)
	}
	asked := g.cfg.clock.Now()
	cmd, err := g.link.Do(ctx, valueKey, &send.Call{Script: g.keys.Acquire(valueKey, request), Rank: rank, Late: r.tooLate, Waiters: r.waiters})
	if err != nil {
		return protocol.Acquired{}, err
	}
	got, err := protocol.ParseAcquired(cmd)
	if r.waited && err == nil {
		g.storedMeanwhile.Found(got.Status == protocol.HasValue)
	}
	if !got.FreshAt.IsZero() {
		g.serverClocks.Note(r.job.key, got.FreshAt, asked)
	}
	return got, err
}

// stored reads what another instance may have stored while this one waited for its slot, with the epochs that judge it. In a cold start of a
// fleet that is most keys, and a read costs Redis a tenth of the script. Where Redis is far, or nobody else loads, the script asks at once.
func (r *rebuild) stored(ctx context.Context) []byte {
	g, valueKey := r.guard, r.job.valueKey
	if g.storedMeanwhile.Expected() || g.link.Shortest(valueKey) > readFirst {
		return nil
	}
	epochs := g.epochs.Begin(r.job.key, valueKey, r.job.kind, r.job.known)
	read, err := g.link.Get(ctx, valueKey, epochs.Keys()...)
	if err != nil || read.Err != nil {
		return nil // the script will say why
	}
	epochs.Take(read)
	r.epochs = &epochs
	if read.Raw != nil {
		g.storedMeanwhile.Found(true)
	}
	return read.Raw
}

// asked returns epochs that were asked for in this attempt, after its tick: they judge a value that others loaded.
func (r *rebuild) asked(ctx context.Context) *epoch.Reading {
	if r.epochs == nil {
		epochs := r.guard.epochs.Begin(r.job.key, r.job.valueKey, r.job.kind, r.job.known)
		epochs.Ask(ctx)
		r.epochs = &epochs
	}
	return r.epochs
}

// beforeLoad returns epochs that were asked for before the load of this rebuild begins.
func (r *rebuild) beforeLoad(ctx context.Context) *epoch.Reading {
	if r.epochs == nil && r.job.epochs != nil && r.job.anew == nil {
		return r.job.epochs
	}
	return r.asked(ctx) // also to see whether what is replaced is still valid
}

func (r *rebuild) returnSlot() {
	r.guard.loaders.limits.Free(r.slot)
	r.slot = limit.Slot{}
}

// failure returns the remembered error of a load: the error itself if it was one of ours, else its text.
func (r *rebuild) failure(got protocol.Acquired) error {
	if err := r.guard.failures.Find(got.Failed); err != nil {
		return err
	}
	return r.job.policy.loadError(r.job.key, got.Message)
}

// identify makes the origin of the load, if it has one, part of the token for its lease, so that whoever finds the lease knows
// whose load it is.
func (r *rebuild) identify(ctx context.Context) {
	if origin := r.guard.cfg.Hooks.origin(ctx); origin != "" {
		r.token = protocol.NewToken(origin)
	}
}

// recall gives back a lease that may have been granted without a reply.
func (r *rebuild) recall(err error) {
	if !errors.Is(err, breaker.ErrOpen) {
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
	}
	_ = r.guard.life.Try(r.giveUp) // stop: RedisTimeout. If the Guard is closed, the lease expires.
}

// giveUp releases the lease, also when the flight's context has ended.
func (r *rebuild) giveUp() {
	// If this fails too, the lease expires.
	_, _ = r.guard.link.Do(context.Background(), r.job.valueKey, &send.Call{Script: r.guard.keys.Release(r.job.valueKey, r.token), Rank: send.EndsWork})
}
