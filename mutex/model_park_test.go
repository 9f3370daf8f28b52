package mutex

import (
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
)

// parked is a lock that nobody holds and nobody gets before its time.
type parked struct {
	token string
	until int64
}

// park gives up what the actor holds, for others to have it later.
func (w *world) park(a *actor) {
	held := a.until > w.Mono
	a.stage = idle
	w.passes[a.inbox] = 0 // the next of its process asks for itself
	rest := 1 + w.Rand.Int64N(longestLease)
	until, known := w.Mono+rest, false              // the first request may be the one that ran
	for tries := 0; !known && tries < 20; tries++ { // as a release
		w.send(a, "parks", a.parking(ms(rest), a.lost), func(cmd *redis.Cmd, _ int64) {
			known = true
			reply, _ := cmd.Int64()
			if w.now.holds(a.id, a.token) || w.now.queued(a.id) {
				w.Wrong("%s is left after it was parked", a.id)
			}
			w.gone[a.id] = a.token
			if held && a.until > w.Mono && reply < queue.Done {
				w.Wrong("%s was trusted, and was not parked: %d", a.id, reply)
			}
			if reply == queue.Done {
				w.parked = parked{a.id + parkedMark, until}
			}
		}, func() {})
	}
}

// checkParked: nobody has the lock before its time, nor can free it.
func (w *world) checkParked() {
	if w.parked.until > w.Mono && w.now.token() != w.parked.token {
		w.Wrong("%q has the lock, which %s was to have for %d ms more", w.now.token(), w.parked.token, w.parked.until-w.Mono)
	}
}
