package locktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// asks is how calls ask for a lock. An answer is the error of the call: who gets the lock gives it back.
type asks map[string]func(ctx context.Context) error

// crowd is how many calls of a process ask at once: some of them wait in the process.
const crowd = 3

// unlocker is a lease, as far as asks needs one.
type unlocker interface {
	Unlock(ctx context.Context) error
}

// asked is what hands such leases out.
type asked[L unlocker] interface {
	Lock(ctx context.Context, name string) (L, error)
	TryLock(ctx context.Context, name string) (L, error)
	Do(ctx context.Context, name string, f func(context.Context, L) error) error
}

func asksOf[L unlocker](k asked[L], name string) asks {
	answer := func(l L, err error) error {
		if err != nil {
			return err
		}
		return l.Unlock(context.Background())
	}
	return asks{
		"Lock":    func(ctx context.Context) error { return answer(k.Lock(ctx, name)) },
		"TryLock": func(ctx context.Context) error { return answer(k.TryLock(ctx, name)) },
		"Do":      func(ctx context.Context) error { return k.Do(ctx, name, func(context.Context, L) error { return nil }) },
	}
}

// impatient asks several times at once, for that long, and returns the answers.
func (ask asks) impatient(how string, wait time.Duration) (answers []error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	answers = make([]error, crowd)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = ask[how](ctx) }) // owner: the test; ends with ctx; joined below
	}
	all.Wait()
	return answers
}

// told is for a lock that somebody has: a caller that waits for long enough hears of that.
func (ask asks) told(tb testing.TB, notAcquired error) {
	tb.Helper()
	for how := range ask {
		wait := 50 * time.Millisecond
		await(tb, how+" hears that others have the lock", func() bool {
			heard := 0
			for _, err := range ask.impatient(how, wait) {
				switch ended := errors.Is(err, context.DeadlineExceeded); {
				case errors.Is(err, notAcquired) && (ended || how == "TryLock"):
					heard++
				case !ended:
					tb.Fatalf("%s: %v", how, err)
				}
			}
			wait *= 2
			return heard == crowd
		})
	}
}

// untold is for a lock of which nobody says anything until the calls are over, as their context is if ends says so.
func (ask asks) untold(tb testing.TB, what string, notAcquired error, ends bool) {
	tb.Helper()
	for how := range ask {
		for _, err := range ask.impatient(how, 200*time.Millisecond) {
			if err == nil || errors.Is(err, notAcquired) || ends && !errors.Is(err, context.DeadlineExceeded) {
				tb.Errorf("%s, %s: %v", what, how, err)
			}
		}
	}
}

// toldTaken has another process, and then the same one, hold the lock.
func toldTaken(b *bench) {
	k := b.open()
	for _, holder := range []Locks{b.open(), k} {
		l := b.lock(holder)
		asksOf[Lease](k, "x").told(b, b.kind.NotAcquired)
		b.unlock(l)
	}
}

// untold has the server silent from the start, and after it has said that another lock is taken; then it is away.
func untold(b *bench) {
	line := b.line()
	k := b.kind.Open(b, line.addr, b.config())
	b.reaches(k)
	line.cut(true)
	asksOf[Lease](k, "x").untold(b, "silent", b.kind.NotAcquired, true)
	line.cut(false) // late answers arrive
	b.reaches(k)

	other := b.open()
	held := b.lock(other)
	asksOf[Lease](k, "x").told(b, b.kind.NotAcquired)
	line.cut(true)
	asksOf[Lease](k, "y").untold(b, "silent after an answer about another lock", b.kind.NotAcquired, true)
	b.unlock(held)
	line.cut(false)
	b.reaches(k)
	b.unlock(b.lock(other)) // nothing of what came late is left

	for _, relay := range line.relays {
		_ = relay.Close() // its connections may have ended
	}
	asksOf[Lease](k, "z").untold(b, "away", b.kind.NotAcquired, false)
}

// toldByRedis is toldTaken.
func toldByRedis[K OnRedis[L], L Held](s *stage[K, L]) {
	k := s.open(config.Lock{})
	for _, holder := range []K{s.open(config.Lock{}), k} {
		l := s.lock(holder, "x")
		asksOf[L](k, "x").told(s, lifecycle.ErrNotAcquired)
		s.unlock(l)
	}
}

// untoldByRedis has Redis silent, its answers late, and connections refused, whether the lock is free or not.
func untoldByRedis[K OnRedis[L], L Held](s *stage[K, L]) {
	for what, harm := range map[string]func(p *redistest.Proxy) (mend func()){
		"silent": func(p *redistest.Proxy) func() {
			p.BlackHole(true)
			return func() { p.BlackHole(false); p.Cut() }
		},
		"late": func(p *redistest.Proxy) func() {
			rule := p.On(func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" }, redistest.HoldReply)
			return func() { rule.Remove(); rule.Release() }
		},
		"away": func(p *redistest.Proxy) func() {
			p.Refuse(true)
			return func() { p.Refuse(false) }
		},
	} {
		p := redistest.StartProxy(s, s.face.Server.Addr())
		k, other := s.on(p.Client(s), config.Lock{}), s.open(config.Lock{})
		s.unlock(s.lock(k, "known"))
		mend := harm(p)
		asksOf[L](k, "free").untold(s, what, lifecycle.ErrNotAcquired, what != "away")
		l := s.lock(other, "held")
		asksOf[L](k, "held").untold(s, what, lifecycle.ErrNotAcquired, what != "away")
		s.unlock(l)
		mend()
		for _, name := range []string{"free", "held"} {
			s.unlock(s.lock(other, name)) // what came late has taken nothing
		}
	}
}
