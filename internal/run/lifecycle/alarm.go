package lifecycle

import "time"

// Alarm calls a function at the earliest of the times that it is set to. Its user's mutex guards it.
type Alarm struct {
	ring  func()
	timer *time.Timer
	at    time.Time // zero: it is not set
}

// NewAlarm returns an Alarm that is not set. The function calls Rung, and sets it to what is still to come.
func NewAlarm(ring func()) Alarm { return Alarm{ring: ring} }

// Set has it ring then, or earlier.
func (a *Alarm) Set(at time.Time) {
	switch {
	case !a.at.IsZero() && !at.Before(a.at):
		return // it is set anew when it rings
	case a.timer == nil:
		a.timer = time.AfterFunc(time.Until(at), a.ring)
	default:
		a.timer.Reset(time.Until(at))
	}
	a.at = at
}

// Rung says that it has rung.
func (a *Alarm) Rung() { a.at = time.Time{} }

// Stop ends it. A call of the function may be under way.
func (a *Alarm) Stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
