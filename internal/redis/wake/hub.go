package wake

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Redis is what an inbox needs of a client, which can also subscribe (package goredis).
type Redis = script.Processor

// hub is a process's one subscription on a Redis client, which all its inboxes share.
type hub struct {
	rdb    Redis
	suffix string // of the channels of its inboxes
	start  sync.Once
	life   *lifecycle.Life // joins its goroutines

	live        atomic.Bool  // every node's subscription is confirmed
	lastWaiting atomic.Int64 // when messages were last relied on, by clock.Mono

	mu        sync.Mutex
	waiters   map[string]*Waiter     // by key; the last that came, which knows those before it
	inboxes   map[string]int         // how many are open, by channel
	listeners map[string][]*Listener // by channel; the slices do not change
	version   int                    // of the set of channels; grows
	renewed   bool                   // a subscription that stood was given up for a new channel, and none has stood since
	links     map[Redis]*link        // the goroutine of run alone adds and removes
	observers map[*observer]struct{}
	echoes    map[string]*Echoes // by channel of their inbox

	telling sync.Mutex // one observer at a time hears one thing at a time
	told    bool       // guarded by telling
}

func newHub(rdb Redis) *hub {
	in := &hub{
		rdb:       rdb,
		life:      lifecycle.New(),
		suffix:    keys.Inboxes + rand.Text(),
		waiters:   make(map[string]*Waiter),
		inboxes:   make(map[string]int),
		listeners: make(map[string][]*Listener),
		links:     make(map[Redis]*link),
		echoes:    make(map[string]*Echoes),
	}
	in.lastWaiting.Store(-int64(busyFor))
	return in
}

// begin begins to subscribe, in the background, if that has not been done yet.
func (in *hub) begin() {
	in.start.Do(func() { in.life.Try(in.run) }) // stop: close, which joins it
}

func (in *hub) close() { in.life.Close(context.Canceled, nil) }

// run keeps one link per node: one for a client or a cluster, one for each shard of a ring, whose shards may change.
func (in *hub) run() {
	for in.syncLinks(); lifecycle.Sleep(in.life.Ending, time.Second); {
		in.syncLinks()
	}
}

// syncLinks starts and stops links. Listeners learn of a new link before it may be confirmed: else it would seem to
// have been there all the time, and nobody would ask again.
func (in *hub) syncLinks() {
	current := goredis.Shards(in.life.Ending, in.rdb)
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
	in.tell(nil)
	for _, l := range started {
		in.life.Go(l.receive) // stop: l.stop, or close, which joins it
		in.life.Go(l.watch)   // as above
	}
}

// changed recomputes whether the inbox is live, and tells every waiter to ask again when that changed. why is the
// reason if it is not.
func (in *hub) changed(why error) {
	in.mu.Lock()
	in.changedLocked()
	in.mu.Unlock()
	in.tell(why)
}

func (in *hub) changedLocked() {
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
	if live {
		in.newsLocked()
	}
	in.askAgainLocked()
}

// resubscribed tells everyone that what was published meanwhile is lost.
func (in *hub) resubscribed() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.missedLocked()
	in.askAgainLocked()
}

func (in *hub) askAgainLocked() {
	for _, w := range in.waiters {
		for ; w != nil; w = w.next {
			w.offer(Message{AskAgain: true})
		}
	}
}

// dispatch gives a message to those who listen to its channel, or watch its key.
func (in *hub) dispatch(channel, payload string) {
	if !strings.HasSuffix(channel, in.suffix) {
		in.broadcast(channel, payload)
		return
	}
	key, body, ok := parseFrame(payload)
	switch {
	case !ok:
		return // nothing of ours
	case key == "":
		in.echoed(channel, body)
		return
	}
	for _, notice := range in.offer(key, body) {
		notice(body)
	}
}

// offer gives a message to the waiters of its key, and returns the functions that are to be called with it.
func (in *hub) offer(key, body string) (notices []func(body string)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for w := in.waiters[key]; w != nil; w = w.next {
		w.offer(Message{Body: body})
		if w.notice != nil {
			notices = append(notices, w.notice)
		}
	}
	return notices
}

// anyInbox is a channel that is subscribed.
func (in *hub) anyInbox() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	for channel := range in.inboxes {
		return channel
	}
	return in.suffix // all have left
}
