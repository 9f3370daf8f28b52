package watch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/run/logging"
)

// flapping is how long a trouble must last that comes back within ten seconds to be worth a line.
const flapping = time.Second

// episode logs a lasting trouble: one line when it begins, and one when it is over, with its length and cost. A trouble
// that comes and goes is not logged each time: until it has lasted for delay, it is only counted, and one that begins
// within ten seconds of the last logged one has to last a second first, the next such one two, and so on up to the ten
// seconds. A line that comes late says for how long there has been trouble. One that another brings has no line while
// that lasts, nor for its delay after it.
type episode struct {
	says
	logger *slog.Logger

	mu     sync.Mutex
	closed bool
	since  time.Time   // zero: all is well
	logged bool        // its beginning was
	last   time.Time   // when a beginning was last logged
	again  int         // how many were, each within ten seconds of the one before
	more   int         // that began since, and were not
	timer  *time.Timer // logs the beginning; owner: the episode; stop: end, close
	behind bool        // another trouble brought it, when the timer last looked
	args   []any       // for the beginning
}

// says is what a trouble is called on the page of package admin, and what is logged of it.
type says struct {
	name        string        // empty: not among the troubles of the Guard
	begun, over string        // no over: it is, once it has a line, or would have one but for what brings it
	delay       time.Duration // how long it must last to be worth a line; 0: none
	costs       []cost        // what to log at the end
	brings      func() bool   // another trouble lasts that may bring it, whose line is the cause; nil: none does
}

// cost is what a trouble costs: how much a count has grown since it began.
type cost struct {
	name   string
	count  func() int64
	before int64
}

// rename changes the lines that are logged from the next trouble on.
func (e *episode) rename(begun, over string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun, e.over = begun, over
}

// begin notes that there is trouble. It may be called again: the last arguments, if there are any, are logged.
func (e *episode) begin(args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || !e.since.IsZero() {
		if !e.logged && len(args) > 0 {
			e.args = args
		}
		if e.over == "" {
			e.more++
		}
		return
	}
	now := time.Now()
	e.since, e.args = now, args
	for i := range e.costs {
		e.costs[i].before = e.costs[i].count()
	}
	wait := e.delay
	if quiet := now.Sub(e.last); quiet < logging.Every {
		wait = max(wait, min(flapping<<min(e.again, 4), logging.Every-quiet))
	}
	if wait <= 0 && !e.isBrought() {
		e.logLocked()
		return
	}
	e.timer = time.AfterFunc(wait, e.lasts)
}

func (e *episode) isBrought() bool { return e.brings != nil && e.brings() }

// lasts logs a trouble that goes on, unless another brings it, or did so until a moment ago.
func (e *episode) lasts() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.since.IsZero() || e.logged {
		return
	}
	was := e.behind
	switch e.behind = e.isBrought(); {
	case e.behind && e.over == "":
		e.since, e.more = time.Time{}, 0
	case e.behind || was:
		e.timer.Reset(max(flapping, e.delay))
	default:
		e.logLocked()
	}
}

func (e *episode) logLocked() {
	now := time.Now()
	if e.again++; now.Sub(e.last) > logging.Every {
		e.again = 0
	}
	e.logged, e.last = true, now
	args := e.args
	if lasts := now.Sub(e.since).Round(time.Millisecond); lasts > 0 && e.over != "" {
		args = append(args, "for", lasts.String())
	}
	if e.more > 0 {
		args = append(args, "more", e.more)
		e.more = 0
	}
	e.logger.Log(context.Background(), slog.LevelWarn, "cacheguard: "+e.begun, args...)
	if e.over == "" {
		e.since, e.logged = time.Time{}, false
	}
}

// end notes that the trouble is over. The arguments are logged after what it cost.
func (e *episode) end(args ...any) { e.endAt(time.Now(), args...) }

// endAt is end for one that was over then, which is seen only now.
func (e *episode) endAt(then time.Time, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.since.IsZero() {
		return
	}
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	if e.logged {
		attrs := []any{"lasted", logging.Text(then.Sub(e.since))}
		for _, c := range e.costs {
			attrs = append(attrs, c.name, c.count()-c.before)
		}
		e.logger.Log(context.Background(), slog.LevelInfo, "cacheguard: "+e.over, append(attrs, args...)...)
	} else {
		e.more++
	}
	e.since, e.logged, e.behind, e.args = time.Time{}, false, false, nil
}

// lasting is for how long there has been trouble; 0: there is none.
func (e *episode) lasting() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		return 0
	}
	return time.Since(e.since)
}

// on reports whether there is trouble.
func (e *episode) on() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.since.IsZero()
}

func (e *episode) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.timer != nil {
		e.timer.Stop()
	}
}
