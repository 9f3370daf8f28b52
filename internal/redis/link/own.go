package link

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/hooks"
	"github.com/cacheguard/go/internal/redis/script"
)

// ownTimeout is how long a caller may be held up by a request that it sends itself.
const ownTimeout = 25 * time.Millisecond

// ownHands send requests on the goroutine of their callers, which saves the change between goroutines: as much again as a
// request costs a caller that is alone and near.
//
// A context cannot interrupt what go-redis reads, so this is done with a client that gives up after ownTimeout and sends
// nothing twice; what fails is sent again by the lane. That client shares the user's connections, but go-redis drops its
// hooks: a client with hooks is left to the lane, which calls them.
type ownHands struct {
	timeout time.Duration
	quick   *redis.Client    // the user's, with another time-out and without hooks
	once    script.Processor // quick, for scripts
	patient script.Processor // the same with the user's time-out, or the Link's
	hooks   *hooks.Watch
	rest    rest
}

// newOwnHands returns nil for a client that cannot do so. Quickly is when it gives up, timeout when the Link does.
func newOwnHands(rdb Redis, quickly, timeout time.Duration) *ownHands {
	client, ok := rdb.(*redis.Client)
	if !ok {
		return nil
	}
	quick := client.WithTimeout(quickly)
	read := client.Options().ReadTimeout
	if read <= 0 || read > timeout {
		read = timeout
	}
	return &ownHands{
		timeout: quickly, quick: quick, once: script.Once(quick),
		patient: script.Once(client.WithTimeout(read)), hooks: hooks.Of(client),
	}
}

// ready reports whether a caller may send a request: Redis is quick these days, and nobody wants to see the requests.
func (o *ownHands) ready(now time.Time) bool {
	return o.rest.over(now) && o.hooks.None()
}

// unseen reports whether no hooks look at the requests of the client.
func (l *Link) unseen() bool {
	return l.own != nil && l.own.hooks.None()
}

// ownFlight is a request that its caller sends, and the context for it: the wait for a connection ends with ownTimeout too.
// A lane keeps it for the next.
type ownFlight struct {
	flight
	caller  context.Context //nolint:containedctx // values only
	patient bool            // it may take the Link's time-out
	key     string          // that it reads
	end     chan struct{}
	read    ownRequest

	once sync.Once // closes end
}

func (f *ownFlight) Deadline() (time.Time, bool) {
	if f.patient {
		return f.deadline, true
	}
	return f.slowAt, true
}

func (f *ownFlight) Done() <-chan struct{} { return f.end }
func (f *ownFlight) Value(key any) any     { return f.caller.Value(key) }

func (f *ownFlight) Err() error {
	select {
	case <-f.end:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func (f *ownFlight) expire() { f.once.Do(func() { close(f.end) }) }

// beginOwnLocked starts the clock of a caller's own request.
func (l *lane) beginOwnLocked(ctx context.Context, patient bool) *ownFlight {
	own := l.hands.takeLocked()
	now := time.Now()
	own.flight = flight{own: own, sent: now, slowAt: now.Add(l.link.own.timeout), deadline: now.Add(l.link.timeout)}
	own.caller, own.patient = ctx, patient
	l.flying = append(l.flying, &own.flight)
	l.credits++
	l.watchLocked(now, own.slowAt)
	return own
}

// beginAlone makes a caller send a request itself, if nothing is under way in the lane. The caller calls endAlone.
func (l *lane) beginAlone(ctx context.Context, key string, patient bool) (f *ownFlight, ok bool) {
	own := l.link.own
	if own == nil {
		return nil, false
	}
	l.mu.Lock()
	alone := !l.closed && !l.gathering && l.queue.empty() && l.trip.isNear() && l.hands.freeLocked(key, len(l.flying))
	if alone {
		f = l.beginOwnLocked(ctx, patient)
		f.key = key
		l.link.running.Add(1)
	}
	l.mu.Unlock()
	if !alone {
		return nil, false
	}
	var err error
	if !own.ready(f.sent) {
		l.endAlone(f, errNotSent, 0)
		return nil, false
	}
	if f.permit, err = l.breaker.Allow(); err != nil {
		l.endAlone(f, errNotSent, 0)
		return nil, false
	}
	f.asked = true
	return f, true
}

var errNotSent = errors.New("not sent")

// endAlone lands the flight. A failure says nothing of Redis yet: the lane tries again, with more patience.
func (l *lane) endAlone(f *ownFlight, err error, bytes int) {
	defer l.link.running.Done()
	took := time.Since(f.sent)
	now, permit, asked := f.sent.Add(took), f.permit, f.asked // it is the next caller's as soon as it has landed
	l.mu.Lock()
	if err == nil {
		l.trip.add(now, took)
	}
	l.bytes += uint64(bytes)
	l.landLocked(&f.flight)
	l.hands.returnLocked(f)
	l.dispatchLocked()
	l.mu.Unlock()
	if asked {
		l.link.own.rest.after(now, took, err != nil && took >= l.link.own.timeout)
		if err != nil {
			err = context.Canceled // which the breaker does not count
		}
		permit.Done(err)
	}
}

// attempt is the result of a call that its caller tried to send itself.
type attempt int

const (
	unsent    attempt = iota
	refused           // Redis says that it cannot run it now
	uncertain         // it may have run
	answered
)

// callAlone runs the call on the caller's goroutine. A call without an answer must be queued. A patient one waits for its reply
// as long as a queued one would.
func (l *lane) callAlone(ctx context.Context, call *script.Call, trail *Trail, patient bool) (Reply, attempt) {
	f, ok := l.beginAlone(ctx, "", patient)
	if !ok {
		return Reply{}, unsent
	}
	if !trail.begin() {
		l.endAlone(f, errNotSent, 0)
		return failed(context.Canceled), answered
	}
	through, sent := l.link.own.once, f.sent
	if patient {
		through = l.link.own.patient
	}
	cmd := call.RunUnseen(f, through)
	err := cmd.Err()
	trail.end(err)
	came := answered
	if err != nil && (breaker.Unavailable(err) || sentAgain(err)) {
		came = refused
		if _, said := errors.AsType[redis.Error](err); !said {
			came = uncertain
		}
	} else {
		err = nil // it is the reply
	}
	l.endAlone(f, err, 0)
	return Reply{cmd, sent}, came
}

// failed is the reply to a call that was not sent, or not answered.
func failed(err error) Reply {
	cmd := redis.NewCmd(context.Background())
	cmd.SetErr(err)
	return Reply{Cmd: cmd}
}
