package send

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
)

const (
	maxCalls   = 64       // in one parcel
	maxCarried = 64 << 10 // bytes of what may hold up others
)

// Rank says which calls go ahead of others.
type Rank int

// The ranks, first come first served within each.
const (
	EndsWork  Rank = iota // what ends work under way. It is sent also while the breaker is open.
	Renews                // what keeps a lease. It is sent then, too.
	HoldsSlot             // of a caller that holds what others wait for
	Ordinary
	ranks
)

// Call is one run of a script.
type Call struct {
	Script   *script.Call
	Rank     Rank
	Size     int    // of its arguments in bytes, if they are large
	Trail    *Trail // notes each time that it is sent, and refuses it when it is closed; nil: nobody wants to know
	Single   bool   // it is sent once, also if that fails
	Replicas int    // that have to acknowledge what it writes, if it goes apart

	// Told, if not nil, has the answer. Late, if not nil, is called when the script may have run although the answer
	// was another, or its caller had walked away: with the reply, or with an error that does not say. Both are called
	// on goroutines of the Link's, and must not block.
	Told, Late func(Reply, error)
}

// Reply is what Redis says.
type Reply struct {
	*redis.Cmd
	Sent time.Time // before the call was written
}

// queuedCall is a call that is queued or in flight.
type queuedCall struct {
	Call
	lane   *lane
	ctx    context.Context //nolint:containedctx // of its caller
	leaves time.Time       // its caller, at the latest; zero: it does not say
	with   []*queuedCall   // that go in its request, and are not queued themselves

	before, after *queuedCall // in the queue; guarded by the lane's mutex

	// Guarded by the lane's mutex.
	tried    bool // it may have been sent before, without an answer, and Late is to be called if it is not sent again
	alone    bool // it was refused in a pipeline
	waited   bool // its caller waits
	queued   bool
	sent     bool
	answered bool

	began time.Time // before it was sent last
	reply Reply     // once it is answered
	err   error
	by    *awaited
	own   awaited // by, unless others are waited for together with it
}

// awaited is what a caller waits for: calls that are not answered yet.
type awaited struct {
	open atomic.Int64
	done chan struct{} // closed once there is none
}

// unanswered is for a call that will not be sent, now or again. A caller that walks away may do so as well as what
// fails it.
func (c *queuedCall) unanswered(err error) {
	c.lane.mu.Lock()
	tried := c.tried
	c.tried = false
	c.lane.mu.Unlock()
	if tried {
		c.late(nil, err)
	}
}

func (c *queuedCall) late(cmd *redis.Cmd, err error) {
	if c.Late != nil {
		c.Late(Reply{cmd, c.began}, err)
	}
}

// answer hands the answer to the caller, and reports whether it waits for it.
func (c *queuedCall) answer(cmd *redis.Cmd, err error) bool {
	c.lane.mu.Lock()
	answered := c.answerLocked(cmd, err)
	c.lane.mu.Unlock()
	if answered && c.Told != nil {
		c.Told(c.reply, c.err)
	}
	return answered
}

func (c *queuedCall) answerLocked(cmd *redis.Cmd, err error) bool {
	if c.answered || !c.waited {
		return false
	}
	c.answered = true
	c.reply, c.err = Reply{cmd, c.began}, err
	if c.by.open.Add(-1) == 0 {
		close(c.by.done)
	}
	return true
}

// failed is the reply to a call that was not sent, or not answered.
func failed(err error) Reply {
	cmd := redis.NewCmd(context.Background())
	cmd.SetErr(err)
	return Reply{Cmd: cmd}
}

const (
	// maxTogether is how many calls share a request at most. Redis takes some 50 µs for each, serves others in between,
	// and all have to be answered within the client's ReadTimeout, 3 seconds unless it is set.
	maxTogether = 16384

	// eachMore is by how much each call beyond maxCalls makes a request's time-out longer.
	eachMore = 150 * time.Microsecond
)

// forMore is how much longer a request with n calls may take than one with few.
func forMore(n int) time.Duration { return time.Duration(max(n-maxCalls, 0)) * eachMore }
