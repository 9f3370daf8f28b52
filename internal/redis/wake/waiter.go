package wake

import (
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

// Message is what a waiter finds.
type Message struct {
	Body     string // what the script that freed the key published
	AskAgain bool   // messages may have been lost: look at the key itself
}

// Waiter keeps the messages for one key, and shows at most one at a time.
type Waiter struct {
	// C delivers the message. It is never closed.
	C <-chan Message

	c      chan Message      // nil: see notice
	notice func(body string) // hears messages that nobody waits for
	in     *hub
	key    string
	next   *Waiter // for the same key; guarded by the hub's mutex
}

// Watch begins to keep messages for the key. The caller calls Stop when it is done.
func (in *hub) Watch(key string) *Waiter { return in.watch(key, make(chan Message, 1), nil) }

// Also has C deliver messages for another key, too, until the caller stops the Waiter that it returns.
func (w *Waiter) Also(key string) *Waiter { return w.in.watch(key, w.c, nil) }

func (in *hub) watch(key string, c chan Message, notice func(body string)) *Waiter {
	w := &Waiter{C: c, c: c, notice: notice, in: in, key: key}
	in.mu.Lock()
	defer in.mu.Unlock()
	w.next = in.waiters[key]
	in.waiters[key] = w
	return w
}

// Stop ends the watch.
func (w *Waiter) Stop() {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	first := w.in.waiters[w.key]
	at := &first
	for *at != nil && *at != w {
		at = &(*at).next
	}
	if *at == nil {
		return // it had ended
	}
	if *at = w.next; first == nil {
		delete(w.in.waiters, w.key)
	} else {
		w.in.waiters[w.key] = first
	}
}

// Notify calls f with the body of each message for the key, on the goroutine that receives them: f must be quick. It is
// for news that nobody waits for; messages may be missed. f may be called once more while stop runs.
func (in *hub) Notify(key string, f func(body string)) (stop func()) {
	return in.watch(key, nil, f).Stop
}

// Waiting says that messages are being relied on now, so that the subscription is watched closely for a while.
func (w *Waiter) Waiting() {
	w.in.lastWaiting.Store(int64(clock.Mono()))
}

// offer leaves the message, or word to ask again where there is one already. Offers are made under the inbox's mutex.
func (w *Waiter) offer(m Message) {
	select {
	case w.c <- m:
		return
	default:
	}
	select {
	case <-w.c: // two messages: neither alone is the whole story
	default:
	}
	select {
	case w.c <- Message{AskAgain: true}:
	default: // it has none: only offers fill it, and they exclude each other
	}
}

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
