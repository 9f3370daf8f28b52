package send

import (
	"errors"
	"time"
)

// Giving says how long something is given up that a call may have taken. Redis keeps it for no longer than Worth, but
// counts from when the call runs: a Redis that stood still runs what was sent long before, once it goes on. So the time
// begins anew with each attempt that is not answered, and what is answered after such a one is sent once more, in case
// the call was behind it.
type Giving struct {
	Worth time.Duration

	until  time.Time
	silent bool // the last attempt was not answered
}

// Over reports whether it need not be sent again, after an attempt that ended so.
func (g *Giving) Over(err error) bool {
	switch {
	case errors.Is(err, ErrClosed), settled(err) && !g.silent:
		return true
	case !said(err):
		g.silent, g.until = true, time.Now().Add(g.Worth)
		return false
	case settled(err):
		g.silent = false
		return false
	case g.until.IsZero():
		g.until = time.Now().Add(g.Worth)
	}
	return !time.Now().Before(g.until)
}
