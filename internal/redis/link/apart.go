package link

import (
	"context"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

const (
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

// apart returns the lane of a call that goes apart. WAIT has no key that a client could route it by, so if replicas have to acknowledge
// something, the lane goes to the node which serves the key.
func (l *Link) apart(ctx context.Context, key string, replicas int) (*lane, error) {
	r := route{part: l.breakers.Part(key), replicas: replicas}
	if replicas > 0 {
		var err error
		if r.node, err = l.NodeOf(ctx, key); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.aparts[r]
	if own == nil {
		own = newLane(l, l.breakers.Breaker(r.part), &callQueue{most: maxCalls})
		own.apart, own.node, own.replicas, own.spare, own.closed = true, r.node, replicas, maxFlying, l.closed
		if replicas > 0 {
			own.most = maxAcknowledged
		}
		l.aparts[r] = own
	}
	return own, nil
}

// NodeOf is the node that serves the key; nil: the client itself.
func (l *Link) NodeOf(ctx context.Context, key string) (goredis.Node, error) {
	if !goredis.IsCluster(l.rdb) {
		return goredis.NodeOf(ctx, l.rdb, key)
	}
	return lifecycle.Bounded(ctx, &l.running, l.timeout, func(ctx context.Context) (goredis.Node, error) { return goredis.NodeOf(ctx, l.rdb, key) }, nil)
}

// RunApart runs calls that wait neither for other requests nor for a breaker to close: in lanes of their own, where as many parcels are in
// flight as there have to be. Each reply has its own error, which is a NotReplicated if fewer replicas than wanted have what the call wrote.
// Replicas that do not answer hold up at most a few parcels to their node, and no caller for more than a quarter beyond the time-out.
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
		l.runApart(ctx, calls, todo, replicas, replies)
		todo = slices.DeleteFunc(todo, func(i int) bool { return replicas == 0 || !l.moved(replies[i].Err()) })
		if len(todo) == 0 || attempt == movedAttempts || ctx.Err() != nil {
			return replies
		}
		lifecycle.Sleep(ctx, movedPause<<(attempt-1))
	}
}

// runApart runs the calls at the indices once, those of a lane together.
func (l *Link) runApart(ctx context.Context, calls []*script.Call, at []int, replicas int, replies []Reply) {
	all := make([]*queuedCall, len(at))
	for n, i := range at {
		lane, err := l.apart(ctx, calls[i].Keys[0], replicas)
		if err != nil {
			replies[i] = failed(err)
			continue
		}
		all[n] = newCall(ctx, lane, Call{Script: calls[i], Rank: EndsWork})
	}
	enqueueTogether(all)
	for n, i := range at {
		if all[n] == nil {
			continue
		}
		reply, err := all[n].wait()
		if reply.Cmd == nil {
			reply = failed(err)
		}
		replies[i] = reply
	}
}

// moved reports whether a node does not serve a key, or not yet, and others may. It makes a cluster client ask who serves what, also if a node is gone.
func (l *Link) moved(err error) bool {
	is := script.Says(err, "MOVED ", "ASK ", "TRYAGAIN", "READONLY", "CLUSTERDOWN")
	if is || breaker.Unavailable(err) {
		goredis.Reload(l.rdb)
	}
	return is && !goredis.HasOneServer(l.rdb)
}
