package wake

import (
	"math/rand/v2"
	"time"
)

const (
	// expiryJitter spreads those who ask for a lease at the moment it expires.
	expiryJitter = 50 * time.Millisecond

	// Without push, waiters poll: the first time after about firstPoll, doubling to longestPoll.
	firstPoll   = 20 * time.Millisecond
	longestPoll = 200 * time.Millisecond
)

// Patience is how long to wait for a message of a holder whose lease ends in left: a little longer than that. A waiter
// that is not registered for one polls; polls is how often it has asked before.
func Patience(left time.Duration, registered bool, polls int) time.Duration {
	left = max(left, 0) + rand.N(expiryJitter) // at least that: what others wrote to Redis must not make anybody ask without a pause
	if registered {
		return left
	}
	pause := min(firstPoll<<min(polls, 10), longestPoll)
	return min(left, jittered(pause))
}

// jittered is half to one and a half of the pause.
func jittered(pause time.Duration) time.Duration { return pause/2 + rand.N(pause) }
