package queue

import (
	"context"
	"strconv"
	"time"
)

const (
	// Unlimited is the patience, in ms, of a caller that does not say when it leaves.
	Unlimited = int64(10 * 365 * 24 * time.Hour / time.Millisecond)

	wakeUp = 2 * time.Millisecond // what a process needs to take note of a grant
)

// Patience is for how long, in ms, a waiter can make use of a grant that has yet to reach it. As it is an argument of a
// request that may have to wait, it is reckoned when the request is written.
type Patience struct {
	ends time.Time
}

var unlimited any = Unlimited

// PatienceOf returns how long a waiter with this context stays, a round trip away from Redis: a Patience, or Unlimited.
func PatienceOf(ctx context.Context, roundTrip time.Duration) any {
	leaves, given := ctx.Deadline()
	if !given {
		return unlimited
	}
	return Patience{leaves.Add(-margin(roundTrip))}
}

// Ends is until when a waiter with that patience does not count as dead for it; zero: it never does. Redis reckons in
// whole milliseconds.
func Ends(patience any) time.Time {
	p, limited := patience.(Patience)
	if !limited {
		return time.Time{}
	}
	return p.ends.Add(-2 * time.Millisecond)
}

// margin is how long before its end a wait is of no use: a request, the grant and its way take so long.
func margin(roundTrip time.Duration) time.Duration { return 2*roundTrip + wakeUp }

// MarshalBinary is called by go-redis when it writes the request.
func (p Patience) MarshalBinary() ([]byte, error) {
	ms := max(time.Until(p.ends).Milliseconds(), 0)
	return strconv.AppendInt(nil, ms, 10), nil
}
