package model

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

// slack is by how much, in ms, places may differ from arrivals, as the model's clock goes back and forth within a millisecond.
const slack = 5

// Arrivals are when those came who are queued, by their ids: that is their order, wherever they waited before they asked.
type Arrivals struct {
	world *World
	of    map[string]arrival
}

type arrival struct {
	came   int64
	leaps  int  // of the server's clock until then; -1: it leapt between the arrival and the place, which may be anywhere
	waited bool // before it asked
}

// NewArrivals returns those of a world.
func NewArrivals(w *World) *Arrivals { return &Arrivals{w, make(map[string]arrival)} }

// Waited has an id come that has waited for a while before it asks. It returns when it came, by the server's clock in µs.
func (a *Arrivals) Waited(id string) int64 {
	waited := a.world.Rand.Int64N(3000)
	a.of[id] = arrival{a.world.Mono - waited, a.world.leaps, true}
	return (a.world.Clock() - waited) * 1000
}

// Check looks at the queue, after a script. was has the queue before it.
func (a *Arrivals) Check(queue []string, was func(id string) bool) {
	for _, id := range queue {
		switch it := a.of[id]; {
		case was(id):
		case !it.waited:
			a.of[id] = arrival{came: a.world.Mono, leaps: a.world.leaps}
		case it.leaps != a.world.leaps:
			a.of[id] = arrival{leaps: -1, waited: true}
		}
	}
	for i, id := range queue {
		for _, behind := range queue[i+1:] {
			if before, known := a.before(behind, id); known && before {
				a.world.Wrong("%s is queued behind %s, and came before", behind, id)
			}
		}
	}
}

// MayPass reports whether a caller that asks may pass one that is queued: it had waited before, and nothing says that it came later.
func (a *Arrivals) MayPass(asking, queued string) bool {
	later, known := a.before(queued, asking)
	return a.of[asking].waited && !(known && later)
}

// before reports whether an id came before another, if that is known: the clock that both were placed by has not leapt in between.
func (a *Arrivals) before(id, other string) (before, known bool) {
	it, that := a.of[id], a.of[other]
	return it.came+slack < that.came, it.leaps == that.leaps && it.leaps >= 0
}

// SetBack has two callers queue for a lock that is held, and die. Then the clock is set back, and a third one queues. The calls are
// made by Modelled scripts, with the argument as.
func SetBack(t *testing.T, rdb *redis.Client, calls queue.Calls, as any) {
	t.Helper()
	run := func(at int64, call script.Call) *redis.Cmd {
		t.Helper()
		rdb.HSet(context.Background(), calls.Keys[0]+":clock", "s", at/1000, "us", at%1000*1000)
		cmd := call.Run(context.Background(), rdb)
		if err := cmd.Err(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	ask := func(at int64, token string, ttl time.Duration) queue.Asked {
		t.Helper()
		got, err := queue.ParseAsked(run(at, calls.Asking(token, as, ttl, queue.Grace(ttl), queue.Unlimited, "", 0)))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const before, after = 1_700_000_000_000, 1_600_000_000_000 // the clock, in ms
	held := ask(before, "holder", time.Second)
	for _, dead := range []string{"one", "two"} {
		if status := ask(before, dead, time.Second).Status; status != "queued" {
			t.Errorf("%s: %s, want %s", "a dead waiter", status, "queued")
		}
	}
	if status := ask(after, "third", time.Second).Status; status != "queued" {
		t.Errorf("%s: %s, want %s", "the third waiter", status, "queued")
	}
	_ = run(after+600, calls.Renewing("holder", time.Second, held.Fence))
	_ = ask(after+600, "third", time.Second)
	_ = run(after+1001, calls.Releasing("holder", held.Fence, false))
	if status := ask(after+1001, "third", time.Second).Status; status != "held" {
		t.Errorf("%s: %s, want %s", "the third, when the dead have said nothing for a second", status, "held")
	}
	rdb.Del(context.Background(), append(calls.Keys, calls.Keys[0]+":clock")...)
}
