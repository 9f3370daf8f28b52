package send

import (
	"context"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

const (
	// So many calls are in one of their parcels: a feed hands over thousands at once, and parcels cost this process
	// more than their calls do.
	maxApart = 512

	// So many parcels to a node may wait for its replicas: each holds a connection for as long as they take.
	maxAcknowledged = 4

	// On a cluster, calls whose key has moved are sent so often, with a pause between, twice as long each time.
	movedAttempts = 4
	movedPause    = 20 * time.Millisecond
)

// route is what calls that go apart have in common when they share a lane.
type route struct {
	part     int
	node     goredis.Node // nil: the client finds it
	replicas int          // that have to acknowledge what they write
}

// apart returns the lane of a call that goes apart. Nodes have lanes of their own for renewals, as a cluster client
// fails all that it has sent to several nodes when one of them is away, and for what replicas have to acknowledge: WAIT
// has no key that a client could route it by, so without its node a call must not be sent.
func (l *Link) apart(ctx context.Context, c Call) (own *lane, err error) {
	r := route{part: l.breakers.Part(c.Script.Keys[0]), replicas: c.Replicas}
	if c.Rank == Renews || c.Replicas > 0 {
		r.node, err = l.nodeOf(ctx, c.Script.Keys[0])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own = l.aparts[r]
	if own == nil {
		own = newLane(l, l.breakers.Breaker(r.part), &callQueue{most: maxApart})
		own.apart, own.node, own.replicas, own.spare = true, r.node, r.replicas, maxFlying
		if r.replicas > 0 {
			own.most = maxAcknowledged
		}
		if l.closed {
			own.close()
		}
		l.aparts[r] = own
	}
	return own, err
}

// nodeOf is the node that serves the key; nil: the client itself.
func (l *Link) nodeOf(ctx context.Context, key string) (goredis.Node, error) {
	if !goredis.IsCluster(l.rdb) {
		return goredis.NodeOf(ctx, l.rdb, key)
	}
	return lifecycle.Bounded(ctx, &l.running, l.timeout, func(ctx context.Context) (goredis.Node, error) { return goredis.NodeOf(ctx, l.rdb, key) })
}

// RunApart runs calls that wait neither for other requests nor for a breaker to close: in lanes of their own, where as
// many parcels are in flight as there have to be. Each reply has its own error, which is a NotReplicated if fewer
// replicas than wanted have what the call wrote. Replicas that do not answer hold up at most a few parcels to their
// node, and no caller for more than a quarter beyond the time-out.
func (l *Link) RunApart(ctx context.Context, calls []*script.Call, replicas int) []Reply {
	replies, todo := make([]Reply, len(calls)), make([]int, len(calls))
	for i := range todo {
		todo[i] = i
	}
	if replicas > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout+l.timeout/slowShare)
		defer cancel()
	}
	for attempt := 1; ; attempt++ {
		some := func(n int) Call { return Call{Script: calls[todo[n]], Rank: EndsWork, Replicas: replicas} }
		for n, c := range l.hand(ctx, len(todo), some) {
			reply, err := c.wait()
			if reply.Cmd == nil {
				reply = failed(err)
			}
			replies[todo[n]] = reply
		}
		todo = slices.DeleteFunc(todo, func(i int) bool { return !moved(replies[i].Err()) })
		if len(todo) == 0 || attempt == movedAttempts || ctx.Err() != nil || replicas == 0 || goredis.HasOneServer(l.rdb) {
			return replies
		}
		lifecycle.Sleep(ctx, movedPause<<(attempt-1))
	}
}

// Hand has calls run apart that nobody waits for. Each is told its answer.
func (l *Link) Hand(ctx context.Context, calls []Call) {
	l.hand(ctx, len(calls), func(i int) Call { return calls[i] })
}

func (l *Link) hand(ctx context.Context, n int, calls func(i int) Call) []*queuedCall {
	unknown := make(map[int]error) // why the node of a call is not known
	all := newCallsTogether(ctx, n, func(i int) (*lane, Call) {
		c := calls(i)
		lane, err := l.apart(ctx, c)
		if err != nil && c.Replicas > 0 { // else the client says why
			unknown[i] = err
		}
		return lane, c
	})
	for i, err := range unknown {
		all[i].answer(nil, err)
	}
	enqueueTogether(all)
	return all
}
