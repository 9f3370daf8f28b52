// Package lease renews leases: one clock per process and Redis client says when, and package send sends what is due.
//
// A renewal is a script that extends the lease if its token is still there, and then returns a number above 0; any
// other number means that the lease is lost. It is sent every third of the lease, together with others that are due
// soon. An error says nothing about the lease, so the renewal is tried again a tenth of the lease later, and one that
// has no reply when the time-out is over at once. Its reply counts when it comes late, too.
package lease

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/perclient"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// keepers holds the process's keeper of each client; see package perclient.
var keepers perclient.Shared[*Keeper]

const (
	maxBatch   = 512 // renewals that are handed over together
	mostFlying = 4   // attempts of one renewal that have no answer yet, so that they do not pile up

	// If so many attempts have no answer, they wait to be sent, mostly: then a renewal has one at a time. Tens of
	// thousands of leases would otherwise keep Redis and the process so busy with attempts that none comes in time.
	manyFlying = 4 * maxBatch
)

// Lease is what a keeper renews. Its methods are called on goroutines of the keeper's, and must not block.
type Lease interface {
	// Due returns the call of the next attempt. That returns a number above 0 when the lease was extended, another one
	// when it is lost.
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

	due    time.Time // guarded by the keeper's mutex, as is the rest
	flying int       // attempts that have no answer yet
	place  int       // in the keeper's agenda, from 1; 0: it is not renewed
	alone  bool      // the next attempt is the Alone of its call
}

// Keeper keeps the time of renewals.
type Keeper struct {
	link    *send.Link
	timeout time.Duration
	life    *lifecycle.Life // joins what hands over

	mu    sync.Mutex
	held  agenda
	sent  int             // attempts of all renewals that have no answer yet
	alarm lifecycle.Alarm // calls look. It stays though its lease is gone: so short leases do not set it one by one.
}

// Open returns the process's keeper for the client. The caller calls release when it holds no lease any more. An
// operation of the first opener's timeout bounds each request.
func Open(rdb send.Redis, timeout time.Duration) (k *Keeper, release func()) {
	return keepers.Open(rdb, func() *Keeper { return newKeeper(rdb, timeout) }, (*Keeper).close)
}

func newKeeper(rdb send.Redis, timeout time.Duration) *Keeper {
	k := &Keeper{link: send.NewOnce(rdb, timeout), timeout: timeout, life: lifecycle.New()}
	k.alarm = lifecycle.NewAlarm(k.look) // owner: the Keeper; stop: close; joined through its life
	return k
}

func (k *Keeper) close() {
	k.life.Close(context.Canceled, nil)
	k.link.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.alarm.Stop()
}

// Keep renews the lease until Drop is called or the lease is lost. A renewal under way when Drop is called may still
// be sent: a lease is released by its token, not by silence.
func (k *Keeper) Keep(r *Renewal) {
	first := r.First
	if first.IsZero() {
		first = time.Now().Add(r.TTL / 3)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	heap.Push(&k.held, r)
	k.scheduleLocked(r, first)
}

// Drop ends the renewals, and reports whether the lease was still renewed.
func (k *Keeper) Drop(r *Renewal) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.place == 0 {
		return false
	}
	heap.Remove(&k.held, r.place-1)
	return true
}

// schedule sets when a lease is renewed next.
func (k *Keeper) schedule(r *Renewal, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.place > 0 {
		k.scheduleLocked(r, due)
	}
}

func (k *Keeper) scheduleLocked(r *Renewal, due time.Time) {
	r.due = due
	heap.Fix(&k.held, r.place-1)
	k.alarm.Set(due)
}

// look hands over what is due.
func (k *Keeper) look() {
	if !k.life.Begin() {
		return
	}
	defer k.life.Done()
	if due := k.collect(time.Now()); len(due) > 0 {
		k.life.Go(func() { k.renew(due) }) // stop: its time-out. A client that does not know its nodes may keep it waiting.
	}
}

// collect returns a batch of the renewals that are due, with those next in turn that will be due within a tenth of
// their lease, and sets the alarm for the rest. Until a renewal has its reply, it is due again when it times out.
func (k *Keeper) collect(now time.Time) (due []*Renewal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.alarm.Rung()
	var taken []*Renewal // they are due before others that are soon, until all are taken
	for urgent := k.held.isDue(now); urgent && len(due) < maxBatch && k.held.isSoon(now); {
		r := heap.Pop(&k.held).(*Renewal) //nolint:forcetypeassert // it has nothing else
		r.due = now.Add(min(k.timeout, r.TTL/3))
		if r.flying == 0 || r.flying < mostFlying && k.sent < manyFlying {
			r.flying++
			k.sent++
			due = append(due, r)
		}
		taken = append(taken, r)
	}
	for _, r := range taken {
		heap.Push(&k.held, r)
	}
	if len(k.held) > 0 {
		k.alarm.Set(k.held[0].due)
	}
	return due
}

// renew hands the renewals over, and returns what waits for their answers.
func (k *Keeper) renew(batch []*Renewal) *sync.WaitGroup {
	ctx, cancel := context.WithTimeout(k.life.Ending, k.timeout)
	defer cancel()
	answered := new(sync.WaitGroup)
	calls := make([]send.Call, len(batch))
	for i, r := range batch {
		answered.Add(1)
		due := r.Lease.Due()
		alone := k.goesAlone(r) && due.Alone != nil
		if alone {
			due = *due.Alone
		}
		late := func(reply send.Reply, err error) { k.told(r, due, alone, reply, err) }
		told := func(reply send.Reply, err error) {
			defer answered.Done()
			k.landed(r)
			late(reply, err)
		}
		calls[i] = send.Call{Script: &due, Rank: send.Renews, Replicas: r.Replicas, Single: true, Told: told, Late: late}
	}
	k.link.Hand(ctx, calls)
	return answered
}

func (k *Keeper) landed(r *Renewal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.flying--
	k.sent--
}

// goesAlone reports whether the keys of a renewal were torn apart when it was tried last.
func (k *Keeper) goesAlone(r *Renewal) (alone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	alone, r.alone = r.alone, false
	return alone
}

// again tries a renewal once more at once: with one key, or, if it may have all, unless another attempt is under way.
func (k *Keeper) again(r *Renewal, alone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.alone = r.alone || alone
	if r.place > 0 && (alone || r.flying == 0) {
		k.scheduleLocked(r, time.Now())
	}
}

// told hears of the reply to a renewal, or that there is none. One key alone does not say that the lease is lost.
func (k *Keeper) told(r *Renewal, tried script.Call, alone bool, reply send.Reply, err error) {
	kept := 0
	if err == nil {
		kept, err = reply.Int()
	}
	switch {
	case errors.Is(err, send.ErrTimeout):
		k.again(r, false)
	case tried.Alone != nil && script.Torn(err):
		k.again(r, true)
	case err != nil || alone && kept <= 0:
		k.schedule(r, time.Now().Add(r.TTL/10))
	case kept > 0:
		k.schedule(r, time.Now().Add(r.TTL/3))
		r.Lease.Kept(reply.Sent, kept)
	case k.Drop(r):
		r.Lease.Lost(kept)
	}
}

// RenewAll renews all leases that are held, and returns when the replies are there.
func (k *Keeper) RenewAll() {
	all := k.all()
	k.mu.Lock()
	for _, r := range all {
		r.flying++
	}
	k.sent += len(all)
	k.mu.Unlock()
	for batch := range slices.Chunk(all, maxBatch) {
		k.renew(batch).Wait()
	}
}

// Shortest is the TTL of the shortest of the leases that are held; 0: none is.
func (k *Keeper) Shortest() (ttl time.Duration) {
	for _, r := range k.all() {
		if ttl == 0 || r.TTL < ttl {
			ttl = r.TTL
		}
	}
	return ttl
}

func (k *Keeper) all() []*Renewal {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.held)
}
