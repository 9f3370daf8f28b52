package semaphore

import (
	"context"
	"sync"
	"time"
)

// probeEvery is how often a Limiter looks whether Redis answers again.
const probeEvery = time.Second

// outage is a time in which Redis does not answer, and nobody needs a permit. It ends when a probe was answered; whoever asks for a
// permit, or for Stats, begins one.
type outage struct {
	mu      sync.Mutex
	now     bool
	probing bool
	next    time.Time // probe
	why     error     // it began, until somebody was told
}

// begin begins the outage, or puts off the next probe.
func (o *outage) begin(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now, o.next, o.why = true, time.Now().Add(probeEvery), why
}

// said is why it began, once.
func (o *outage) said() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	why := o.why
	o.why = nil
	return why
}

// isDue reports whether it is time for a probe, which the caller makes.
func (o *outage) isDue() (now, due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	due = o.now && !o.probing && !time.Now().Before(o.next)
	o.probing = o.probing || due
	return o.now, due
}

// probed notes what came of a probe.
func (o *outage) probed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.probing, o.now, o.next = false, err != nil, time.Now().Add(probeEvery)
}

// isSuspended reports whether nobody needs a permit, because Redis does not answer.
func (l *Limiter) isSuspended() bool {
	now, due := l.outage.isDue()
	if due && !l.fleet.base.Life.Try(func() { // stop: RedisTimeout
		_, err := l.fleet.Inspect(context.Background(), l.name)
		l.outage.probed(err)
	}) {
		l.outage.probed(context.Canceled) // it is closed
	}
	return now
}

// pass lets those that wait go without permits, and new ones until Redis answers.
func (l *Limiter) pass(why error) {
	l.outage.begin(why)
	for range l.waiting.Load() {
		l.local.Release()
	}
}
