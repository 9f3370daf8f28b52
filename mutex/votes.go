package mutex

import (
	"errors"

	"github.com/cacheguard/go/internal/lock/queue"
)

// errUnasked is the vote of a server that could not be reached when the lock was asked for.
var errUnasked = errors.New("not asked")

// vote is what one server says to a request.
type vote struct {
	reply int
	fence int64
	err   error
}

// ballot asks every server at once, and counts until a majority says yes, or no majority can. The others go on by themselves.
func (q *Quorum) ballot(ask func(server int) vote) (votes []vote, ok bool) {
	all := make(chan vote, len(q.servers))
	for i := range q.servers {
		q.base.Life.Go(func() { all <- ask(i) }) // owner: the Quorum; stop: RedisTimeout; joined by Close
	}
	yes := 0
	for range q.servers {
		v := <-all
		votes = append(votes, v)
		if v.err == nil && v.reply == queue.Done {
			yes++
		}
		if yes == q.majority {
			return votes, true
		}
		if len(votes)-yes > len(q.servers)-q.majority {
			return votes, false
		}
	}
	return votes, false
}

// verdict returns why there is no majority: no, if a server said so, because another caller may get one; else the
// errors.
func verdict(votes []vote, no error) error {
	var errs []error
	for _, v := range votes {
		if v.err == nil && v.reply != queue.Done {
			return no
		}
		errs = append(errs, v.err)
	}
	return errors.Join(errs...)
}
