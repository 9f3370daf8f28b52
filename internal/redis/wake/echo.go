package wake

import (
	"embed"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/clock"
)

//go:embed lua/*.lua
var files embed.FS

var echoScript = script.Compile(files, "echo")

const (
	echoesLast = 10 * time.Second // after one was needed, they go on
	never      = -1 << 62         // long before any time

	// lookEvery is how often the wall clock is looked at, too, by those who need an echo: it takes as long as the
	// rest of a look at a tier. The monotonic clock stands still while a machine is suspended; but it runs while
	// devices are put to sleep and woken, which takes longer than this, and before which programs are stopped, and
	// after which they go on. So the first who looks then looks at both.
	lookEvery = 100 * time.Microsecond
)

// Echoes prove, for each part of the keyspace, that what is published arrives; see package tier for what they prove.
// The inboxes of one client and prefix share them.
type Echoes struct {
	in      *hub
	channel string
	parts   []Echo
	askers  []*Asker // guarded by the hub's mutex
}

// Echo is of one part. It is asked for in the background while it is needed.
type Echo struct {
	of   *Echoes
	part int

	// asked is when the youngest that is back was asked for, by clock.Mono; moved back if the wall clock says that this
	// is longer ago.
	asked  atomic.Int64
	looked atomic.Int64 // when somebody last needed one, and looked at the wall clock, by clock.Mono

	unanswered atomic.Int64 // when the first was asked for since one came back, by clock.Mono; never: none was

	mu   sync.Mutex // held while asked or wall is written
	wall int64      // the same as asked, in Unix nanoseconds

	asking atomic.Bool   // run does
	news   chan struct{} // the subscription stands; size 1
}

// Asker asks for echoes on behalf of one who needs them.
type Asker struct {
	Every time.Duration // how old the last one may be when another one is asked for

	// Ask runs the call that Echo makes of a key of the part, through the requests that go there anyway. It returns
	// when they are answered, or given up; nobody needs the answer.
	Ask func(part int, echo func(key string) *script.Call)
}

// Echoes begins to have echoes, of that many parts. The caller calls stop when it needs them no more.
func (in *Inbox) Echoes(parts int, a *Asker) (e *Echoes, stop func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if e = in.echoes[in.channel]; e == nil {
		e = &Echoes{in: in.hub, channel: in.channel, parts: make([]Echo, parts)}
		for i := range e.parts {
			p := &e.parts[i]
			p.of, p.part, p.news = e, i, make(chan struct{}, 1)
			p.asked.Store(never)
			p.looked.Store(never)
			p.unanswered.Store(never)
		}
		in.echoes[in.channel] = e
	}
	e.askers = append(e.askers, a)
	return e, func() { e.leave(a) }
}

func (e *Echoes) leave(a *Asker) {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.askers = slices.DeleteFunc(e.askers, func(other *Asker) bool { return other == a })
	if len(e.askers) == 0 && e.in.echoes[e.channel] == e {
		delete(e.in.echoes, e.channel)
	}
}

// Of is the echo of a part.
func (e *Echoes) Of(part int) *Echo { return &e.parts[part] }

// IsYoung reports whether everything is known to have arrived that was published on the part's node until less than
// most before now, by clock.Mono and by the wall clock. It starts the goroutine that asks for the next one.
func (e *Echo) IsYoung(now, most time.Duration) bool {
	if now-time.Duration(e.looked.Load()) > lookEvery {
		e.look(now)
	}
	return now-time.Duration(e.asked.Load()) < most
}

// look finds out whether more time has passed by the wall clock, and has run ask.
func (e *Echo) look(now time.Duration) {
	e.mu.Lock()
	if asked := e.asked.Load(); asked != never {
		e.asked.Store(min(asked, int64(now)-(time.Now().UnixNano()-e.wall)))
	}
	e.looked.Store(int64(now)) // after that, as others then do not look
	e.mu.Unlock()
	if e.asking.CompareAndSwap(false, true) {
		e.of.in.life.Try(e.run) // stop: the end of the hub, the last asker's leave, or nobody needs it; joined by close
	}
}

// Missing reports whether echoes of a part are asked for, and none has come back for longer than that.
func (e *Echoes) Missing(longer time.Duration) bool {
	for i := range e.parts {
		since := e.parts[i].unanswered.Load()
		if since != never && clock.Mono()-time.Duration(since) > longer {
			return true
		}
	}
	return false
}

// Question is the call that has a script publish an empty message to the inbox, at the node that has the key.
func (in *Inbox) Question(key string) *script.Call {
	return &script.Call{Script: echoScript, Keys: []string{key}, Args: []any{in.channel, Frame("", "")}}
}

// run asks again and again while the echo is needed, and the subscription stands: else nothing would come back.
func (e *Echo) run() {
	defer e.asking.Store(false)
	defer e.unanswered.Store(never)
	for clock.Mono()-time.Duration(e.looked.Load()) < echoesLast {
		began, wall := clock.Mono(), time.Now().UnixNano()
		a := e.of.asker()
		if a == nil {
			return
		}
		if e.of.in.live.Load() {
			e.unanswered.CompareAndSwap(never, int64(began))
			message := Frame("", fmt.Sprint(e.part, " ", int64(began), " ", wall))
			a.Ask(e.part, func(key string) *script.Call {
				return &script.Call{Script: echoScript, Keys: []string{key}, Args: []any{e.of.channel, message}}
			})
		}
		if !e.rest(a.Every - (clock.Mono() - began)) {
			return
		}
	}
}

// rest waits for d, or until the subscription stands, and reports whether to go on.
func (e *Echo) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-e.of.in.life.Ending.Done():
		return false
	case <-e.news:
	case <-timer.C:
	}
	return true
}

// asker is the one that wants the youngest echoes; nil: there is none.
func (e *Echoes) asker() (a *Asker) {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	for _, other := range e.askers {
		if a == nil || other.Every < a.Every {
			a = other
		}
	}
	return a
}

// echoed takes in an echo, after all that was published before it.
func (in *hub) echoed(channel, body string) {
	var part int
	var asked, wall int64
	if n, _ := fmt.Sscan(body, &part, &asked, &wall); n < 3 {
		return // a probe
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	e := in.echoes[channel]
	if e != nil && part >= 0 && part < len(e.parts) {
		e.parts[part].back(asked, wall)
	}
}

// back notes an echo. Questions may overtake each other.
func (e *Echo) back(asked, wall int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := int64(clock.Mono()); asked > e.asked.Load() && asked <= now {
		e.unanswered.Store(never)
		e.wall = wall
		e.asked.Store(min(asked, now-(time.Now().UnixNano()-wall)))
	}
}

// newsLocked has echoes asked for at once, as the subscription stands.
func (in *hub) newsLocked() {
	for _, e := range in.echoes {
		for i := range e.parts {
			select {
			case e.parts[i].news <- struct{}{}:
			default: // it will
			}
		}
	}
}
