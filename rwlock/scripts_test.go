package rwlock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Interleavings that the model finds only after many runs.

func reply(t *testing.T, f *fleet, call script.Call) int64 {
	t.Helper()
	n, err := call.Run(context.Background(), f.redis).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A waiter that was forgotten, and queued again without noticing, would otherwise take the message of its first grant for one that came
// after its heartbeat.
func TestHeartbeatOfAnOlderPlaceInTheQueueHasTheWaiterAsk(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	held := must(t, f.lockers[0], (*Locker).Lock, "a")
	for _, m := range []rw.Mode{rw.Writing, rw.Reading} {
		c := newCaller(f.lockers[0], "a", m)
		ask := func() int64 {
			call := c.Asking(c.Token, m.Arg(), time.Minute, queue.LongestGrace, queue.Unlimited, "", 0)
			got, err := queue.ParseAsked(call.Run(t.Context(), f.redis))
			if err != nil || got.Status != "queued" {
				t.Fatalf("%+v, %v", got, err)
			}
			return got.Ticket
		}
		first := ask()
		expect.Equal(t, "ticket of one that asks again", ask(), first)
		expect.Equal(t, "heartbeat", min(1, reply(t, f, c.Beating(c.Token, first, queue.LongestGrace))), 1)
		expect.Equal(t, "release", reply(t, f, c.Releasing(c.Token, 0, false)), 1)
		second := ask()
		expect.Equal(t, "heartbeat of the first place", reply(t, f, c.Beating(c.Token, first, queue.LongestGrace)), 0)
		expect.Equal(t, "heartbeat of the second", min(1, reply(t, f, c.Beating(c.Token, second, queue.LongestGrace))), 1)
		expect.Equal(t, "release", reply(t, f, c.Releasing(c.Token, 0, false)), 1)
	}
	unlock(t, held)
}

func TestLateCopiesOfDowngradeAndUpgradeChangeNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	l := must(t, f.lockers[0], (*Locker).Lock, "a")
	c := callerOf(l)
	downgrade, upgrade := toReader(c.Calls, c.Token, time.Minute, l.Fence()), toWriter(c.Calls, c.Token, time.Minute, l.Fence())
	for range 2 { // the second time as copies
		expect.Equal(t, "downgrade", reply(t, f, downgrade), 1)
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, "readers", f.info("a").Readers, 1)
		if err := l.TryUpgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, "downgrade, late", reply(t, f, downgrade), 1)
		expect.Equal(t, "writer", f.info("a").Token, c.Token)
	}
	if err := l.Downgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "upgrade, late", reply(t, f, upgrade), 1)
	expect.Equal(t, "readers", f.info("a").Readers, 1)
	unlock(t, l)
}

func TestADowngradeThatArrivesAfterAnUpgradeChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{})
	l := must(t, f.lockers[0], (*Locker).Lock, "a")
	c := callerOf(l)
	if fence := reply(t, f, toWriter(c.Calls, c.Token, time.Minute, l.Fence())); fence <= l.Fence() {
		t.Errorf("fence %d after %d", fence, l.Fence())
	}
	expect.Equal(t, "downgrade, late", reply(t, f, toReader(c.Calls, c.Token, time.Minute, l.Fence())), 1)
	expect.Equal(t, "writer", f.info("a").Token, c.Token)
	unlock(t, l)
}

func TestMessageForAnOlderPlaceInTheQueueIsNoGrant(t *testing.T) {
	t.Parallel()
	for _, how := range []take{(*Locker).Lock, (*Locker).RLock} {
		f, k, p := behind(t, Config{})
		f.listening()
		held := must(t, f.lockers[0], (*Locker).Lock, "a")
		w := wait(t, k, how, "a")
		redistest.Await(t, "it waits", func() bool { i := f.info("a"); return i.WaitingWriters+i.WaitingReaders == 1 })
		keys := callerOf(held).Keys
		token := f.redis.ZRange(t.Context(), keys[4], 0, -1).Val()[0]
		for _, key := range []string{keys[0], keys[0] + ":" + token} { // one of them is what it watches
			rule := p.On(acquireCommand, redistest.HoldReply).Times(1)
			frame := fmt.Sprintf("%d:%s0:%d", len(key), key, held.Fence()+1)
			if err := f.redis.Publish(t.Context(), k.locks.Inbox.Address(), frame).Err(); err != nil {
				t.Fatal(err)
			}
			if (key == keys[0]) == (f.info("a").WaitingReaders == 1) {
				<-rule.Hit() // it asks
			}
			rule.Remove()
		}
		expect.Equal(t, "it waits", w.Waits(), true)
		unlock(t, held)
		unlock(t, w.Got())
	}
}
