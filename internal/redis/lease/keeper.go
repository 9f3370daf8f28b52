// Package lease renews leases: one goroutine per process and Redis client renews all of them, in pipelines.
//
// A renewal is a script that extends the lease if its token is still there, and then returns a number above 0; any other number
// means that the lease is lost. It is sent every third of the lease, together with others that are due soon. An error says nothing
// about the lease, so the renewal is tried again a tenth of the lease later. No reply within the timeout is an error too.
//
// Each node of a cluster gets pipelines of its own. go-redis answers none of a pipeline's commands before all nodes have answered, and
// when its context ends each of them fails: a node that is away would end the leases on the others.
package lease

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/link"
	"github.com/cacheguard/go/internal/redis/perclient"
	"github.com/cacheguard/go/internal/redis/script"
)

// keepers holds the process's keeper of each client; see package perclient.
var keepers perclient.Shared[*Keeper]

// maxBatch bounds the renewals of one pipeline.
const maxBatch = 512

// Lease is what a keeper renews. Its methods are called on a goroutine of the keeper's, and must not block.
type Lease interface {
	// Due returns the call of the next attempt. That returns a number above 0 when the lease was extended, another one when
	// it is lost.
	Due() script.Call
	// Kept is called after each such number, with the time before it was asked for.
	Kept(sent time.Time, reply int)
	// Lost is called at most once, after another number, and then the renewals end.
	Lost(reply int)
}

// Renewal is how one lease is renewed.
type Renewal struct {
	Lease    Lease
	TTL      time.Duration // of the lease; renewed at a third of it
	First    time.Time     // when it is renewed first; zero: a third of the TTL from now
	Replicas int           // have to acknowledge a renewal; one that they do not says nothing of the lease, as an error

	due  time.Time // guarded by the keeper's mutex
	sent bool      // no reply yet; guarded by the same mutex
}

// Keeper renews leases.
type Keeper struct {
	rdb     link.Redis
	timeout time.Duration
	kick    chan struct{}
	start   sync.Once
	stop    context.CancelFunc
	ctx     context.Context //nolint:containedctx // the life of the goroutine, ended by stop
	running sync.WaitGroup
	link    *link.Link // for renewals that replicas have to acknowledge

	mu    sync.Mutex
	held  map[*Renewal]struct{}
	sleep time.Time // when the goroutine wakes by itself; zero: never
}

// Open returns the process's keeper for the client. The caller calls release when it holds no lease any more; the
// last one joins the goroutine. An operation of the first opener's timeout bounds each pipeline.
func Open(rdb link.Redis, timeout time.Duration) (k *Keeper, release func()) {
	return keepers.Open(rdb, func() *Keeper { return newKeeper(rdb, timeout) }, (*Keeper).close)
}

func newKeeper(rdb link.Redis, timeout time.Duration) *Keeper {
	k := &Keeper{rdb: rdb, timeout: timeout, kick: make(chan struct{}, 1), held: make(map[*Renewal]struct{}), link: link.NewOnce(rdb, timeout)}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

func (k *Keeper) close() {
	k.start.Do(func() {}) // never started: now it never will be
	k.stop()
	k.running.Wait()
	k.link.Close()
}

// Keep renews the lease until Drop is called or the lease is lost. A renewal under way when Drop is called may still
// be sent: a lease is released by its token, not by silence.
func (k *Keeper) Keep(r *Renewal) {
	k.start.Do(func() { k.running.Go(k.run) }) // owner: the Keeper; stop: k.stop; joined by close
	k.mu.Lock()
	k.held[r] = struct{}{}
	k.mu.Unlock()
	first := r.First
	if first.IsZero() {
		first = time.Now().Add(r.TTL / 3)
	}
	k.schedule(r, first)
}

// Drop ends the renewals.
func (k *Keeper) Drop(r *Renewal) { k.remove(r) }

// remove reports whether the renewal was still held.
func (k *Keeper) remove(r *Renewal) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, held := k.held[r]
	delete(k.held, r)
	return held
}

func (k *Keeper) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, next := k.collect(time.Now())
		if len(due) > 0 {
			k.running.Go(func() { k.renew(due) }) // owner: the Keeper; stop: k.stop; joined by close
			continue
		}
		var alarm <-chan time.Time
		if !next.IsZero() {
			timer.Reset(time.Until(next))
			alarm = timer.C
		}
		select {
		case <-k.ctx.Done():
			return
		case <-k.kick:
		case <-alarm:
		}
	}
}

// collect returns a batch of the renewals that are due, with those that will be within a tenth of their lease, or
// none and the time to look again. Until the batch has its replies, its renewals are due when it times out.
func (k *Keeper) collect(now time.Time) (due []*Renewal, next time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sleep.After(now) {
		next = k.sleep // it stays, though its lease may be gone: so short leases do not wake the goroutine one by one
	}
	for r := range k.held {
		if next.IsZero() || r.due.Before(next) {
			next = r.due
		}
	}
	k.sleep = next
	if next.IsZero() || next.After(now) {
		return nil, next
	}
	for r := range k.held {
		soon := now
		if !r.sent {
			soon = now.Add(r.TTL / 10)
		}
		if len(due) < maxBatch && !r.due.After(soon) {
			r.due, r.sent = now.Add(min(k.timeout, r.TTL/3)), true
			due = append(due, r)
		}
	}
	return due, next
}

// part is the renewals of a batch whose leases are on one node.
type part struct {
	batch []*Renewal
	calls []*script.Call
}

func (k *Keeper) renew(batch []*Renewal) {
	ctx, cancel := context.WithTimeout(k.ctx, k.timeout)
	defer cancel()
	parts := make(map[goredis.Node]part)
	for _, r := range batch {
		call := r.Lease.Due()
		node, _ := k.link.NodeOf(ctx, call.Keys[0]) // if none is known, the client says why
		p := parts[node]
		parts[node] = part{append(p.batch, r), append(p.calls, &call)}
	}
	var renewing sync.WaitGroup
	for _, p := range parts {
		renewing.Go(func() { k.renewPart(ctx, p.batch, p.calls) }) // owner: this call; stop: its time-out, or the client's; joined below
	}
	renewing.Wait()
}

func (k *Keeper) renewPart(ctx context.Context, batch []*Renewal, calls []*script.Call) {
	sent := time.Now()
	replies := k.send(ctx, batch, calls)
	for i, r := range batch {
		kept, err := replies[i].Int()
		switch {
		case err != nil:
			k.schedule(r, time.Now().Add(r.TTL/10))
		case kept > 0:
			k.schedule(r, time.Now().Add(r.TTL/3))
			r.Lease.Kept(sent, kept)
		case k.remove(r):
			r.Lease.Lost(kept)
		}
	}
}

// send sends the renewals: those that need none first, and then, for each number of replicas, those that do.
func (k *Keeper) send(ctx context.Context, batch []*Renewal, calls []*script.Call) []*script.Reply {
	of := make(map[int][]int)
	for i, r := range batch {
		of[r.Replicas] = append(of[r.Replicas], i)
	}
	if len(of[0]) == len(batch) {
		return script.RunAll(ctx, k.rdb, calls)
	}
	replies := make([]*script.Reply, len(batch))
	for _, n := range slices.Sorted(maps.Keys(of)) {
		some := make([]*script.Call, len(of[n]))
		for j, i := range of[n] {
			some[j] = calls[i]
		}
		var answers []*script.Reply
		if n == 0 {
			answers = script.RunAll(ctx, k.rdb, some)
		} else {
			for _, reply := range k.link.RunApart(ctx, some, n) {
				answers = append(answers, reply.Cmd)
			}
		}
		for j, i := range of[n] {
			replies[i] = answers[j]
		}
	}
	return replies
}

// schedule sets when a lease is renewed next, and wakes the goroutine if it would sleep longer than that.
func (k *Keeper) schedule(r *Renewal, due time.Time) {
	k.mu.Lock()
	r.due, r.sent = due, false
	sooner := k.sleep.IsZero() || r.due.Before(k.sleep)
	if sooner {
		k.sleep = r.due
	}
	k.mu.Unlock()
	if sooner {
		select {
		case k.kick <- struct{}{}:
		default: // woken already
		}
	}
}
