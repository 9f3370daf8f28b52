package mutex

import (
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
)

// GiveUp gives the lock up, to the next in the process if it may. The caller's turn ends with that, unless it was lost before.
func (c *claim) GiveUp(trusted bool) (reply int, err error) {
	turn := &c.guest
	if c.of.fair || !trusted {
		turn = new(queue.Guest)
	}
	if rest := c.rest(); rest > 0 {
		defer turn.Leave()
		answer, err := c.of.base.Redis.Release(c.parking(rest, c.trail.Lost()), c.ttl())
		if err != nil {
			return 0, err
		}
		return answer.Int()
	}
	next, reply, err := c.release(turn)
	for next != nil { // it was given the lock, and has left
		next, _, _ = next.release(turn)
	}
	return reply, err
}

// rest is for how long the lock must stay held after it is unlocked.
func (c *claim) rest() time.Duration {
	least := time.Duration(c.least.Load())
	if least == 0 || c.owned() {
		return 0
	}
	return least - time.Since(c.since)
}

// release gives the lock up. It returns the successor that was given the lock but did not wait for it any
// more.
func (c *claim) release(turn *queue.Guest) (orphan *claim, reply int, err error) {
	k, to := c.of.base, successor{}
	guest, first := turn.Next()
	var next *claim
	if guest != nil {
		next = guest.Claim.(*claim)
		to = successor{id: next.id, inbox: k.Inbox.Address(), ttl: k.Config.TTL, first: first}
	}
	sent := time.Now()
	answer, err := k.Redis.Release(c.releasing(to, c.trail.Lost()), k.Config.TTL)
	fence := int64(0)
	if err == nil {
		fence, err = answer.Int64()
	}
	switch {
	case fence > queue.Done:
		if !turn.Pass(guest, queue.Grant{Fence: fence, Sent: sent, Length: k.Config.TTL}) {
			return next, queue.Done, nil
		}
		return nil, queue.Done, nil
	case err != nil && next != nil:
		next.trail.Lose() // if it has the lock, it finds out by asking
		turn.Leave()
		if guest.IsGone() {
			next.Abandon()
		}
	default:
		turn.Leave()
	}
	return nil, int(fence), err
}
