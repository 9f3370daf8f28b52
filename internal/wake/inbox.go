package wake

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/perclient"
)

// Redis is what an inbox needs of a client.
type Redis interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// inboxes holds the process's inbox of each client; see package perclient.
var inboxes perclient.Shared[*Inbox]

// Inbox is a process's one subscription on a Redis client.
type Inbox struct {
	rdb     Redis
	channel string
	start   sync.Once
	stop    context.CancelFunc
	running sync.WaitGroup
	ctx     context.Context //nolint:containedctx // the life of the goroutines, ended by stop

	live        atomic.Bool  // every node's subscription is confirmed
	lastWaiting atomic.Int64 // when messages were last relied on, in nanoseconds since base

	mu        sync.Mutex
	waiters   map[string][]*Waiter
	notices   map[string]map[*func(body string)]struct{}
	listeners map[string][]*Listener // by channel; the slices do not change
	version   int                    // of the set of channels; grows
	links     map[Redis]*link        // the goroutine of run alone adds and removes
}

// Open returns the process's inbox on the client. It does no I/O: Start does. The caller calls release when it no
// longer waits for anything; the last one ends the subscription and joins its goroutines.
func Open(rdb Redis) (in *Inbox, release func()) {
	return inboxes.Open(rdb, func() *Inbox { return newInbox(rdb) }, (*Inbox).close)
}

func newInbox(rdb Redis) *Inbox {
	in := &Inbox{
		rdb:       rdb,
		channel:   "cacheguard:inbox:" + rand.Text(),
		waiters:   make(map[string][]*Waiter),
		notices:   make(map[string]map[*func(string)]struct{}),
		listeners: make(map[string][]*Listener),
		links:     make(map[Redis]*link),
	}
	in.lastWaiting.Store(-int64(busyFor))
	in.ctx, in.stop = context.WithCancel(context.Background())
	return in
}

// Start begins to subscribe, in the background, if that has not been done yet.
func (in *Inbox) Start() {
	in.start.Do(func() { in.running.Go(in.run) }) // owner: the Inbox; stop: in.stop; joined by close
}

// Address is the channel to register for wake-ups; empty while the subscription is not confirmed.
func (in *Inbox) Address() string {
	if !in.live.Load() {
		return ""
	}
	return in.channel
}

func (in *Inbox) close() {
	in.start.Do(func() {}) // never started: now it never will be
	in.stop()
	in.running.Wait()
}

// run keeps one link per node: one for a client or a cluster, one for each shard of a ring, whose shards may change.
func (in *Inbox) run() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		in.syncLinks()
		select {
		case <-in.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// syncLinks starts and stops links. What that means for the inbox is told before a new one may be confirmed: else it would
// seem to have been there all the time, and nobody would ask again.
func (in *Inbox) syncLinks() {
	current := nodes(in.ctx, in.rdb)
	var started []*link
	in.mu.Lock()
	for node, l := range in.links {
		if _, still := current[node]; !still {
			delete(in.links, node)
			l.stop()
		}
	}
	for node := range current {
		if _, known := in.links[node]; !known {
			l := newLink(in, node)
			in.links[node] = l
			started = append(started, l)
		}
	}
	in.changedLocked()
	in.mu.Unlock()
	for _, l := range started {
		in.running.Go(l.receive) // owner: the Inbox; stop: l.stop or in.stop; joined by close
		in.running.Go(l.watch)   // likewise
	}
}

// nodes returns the clients to subscribe on.
func nodes(ctx context.Context, rdb Redis) map[Redis]struct{} {
	ring, ok := rdb.(*redis.Ring)
	if !ok {
		return map[Redis]struct{}{rdb: {}}
	}
	var mu sync.Mutex
	shards := make(map[Redis]struct{})
	_ = ring.ForEachShard(ctx, func(_ context.Context, shard *redis.Client) error { // fails only if the func does
		mu.Lock()
		defer mu.Unlock()
		shards[shard] = struct{}{}
		return nil
	})
	return shards
}

// changed recomputes whether the inbox is live, and tells every waiter to ask again when that changed.
func (in *Inbox) changed() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.changedLocked()
}

func (in *Inbox) changedLocked() {
	live := len(in.links) > 0
	for _, l := range in.links {
		live = live && l.confirmed.Load()
	}
	if live == in.live.Load() {
		return
	}
	if live { // listeners know before anybody can rely on it
		in.missedLocked()
	}
	in.live.Store(live)
	in.askAgainLocked()
}

// resubscribed tells everyone that what was published meanwhile is lost.
func (in *Inbox) resubscribed() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.missedLocked()
	in.askAgainLocked()
}

func (in *Inbox) askAgainLocked() {
	for _, set := range in.waiters {
		for _, w := range set {
			w.offer(Message{AskAgain: true})
		}
	}
}

// dispatch gives a message to those who listen to its channel, or watch its key.
func (in *Inbox) dispatch(channel, payload string) {
	if channel != in.channel {
		in.broadcast(channel, payload)
		return
	}
	key, body, ok := parseFrame(payload)
	if !ok || key == "" {
		return // a probe, or nothing of ours
	}
	for _, notice := range in.offer(key, body) {
		(*notice)(body)
	}
}

// offer gives a message to the waiters of its key, and returns the functions that are to be called with it.
func (in *Inbox) offer(key, body string) []*func(string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, w := range in.waiters[key] {
		w.offer(Message{Body: body})
	}
	return slices.Collect(maps.Keys(in.notices[key]))
}
