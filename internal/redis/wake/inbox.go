package wake

import (
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/internal/redis/perclient"
)

// hubs holds the process's hub of each client; see package perclient.
var hubs perclient.Shared[*hub]

// Inbox is where messages come in for what has one prefix in Redis.
type Inbox struct {
	*hub
	channel string
	begun   sync.Once
	started atomic.Bool // the channel is one that the hub subscribes to

	left, joined bool // guarded by the hub's mutex
}

// Open returns an inbox on the client, for the keys with the prefix. It does no I/O: Start does. The caller calls
// release when it no longer waits for anything; the client's last one ends the subscription and joins its goroutines.
func Open(rdb Redis, prefix string) (in *Inbox, release func()) {
	h, leave := hubs.Open(rdb, func() *hub { return newHub(rdb) }, (*hub).close)
	in = &Inbox{hub: h, channel: prefix + h.suffix}
	return in, sync.OnceFunc(func() {
		in.leave()
		leave()
	})
}

// Start begins to subscribe, in the background, if that has not been done yet. A subscription that stands already, for
// inboxes of other prefixes, is replaced.
func (in *Inbox) Start() {
	in.begun.Do(func() {
		if in.join() {
			in.renew()
		}
		in.started.Store(true)
		in.begin()
	})
}

// Channel is where the inbox's messages come in, whether it is subscribed or not.
func (in *Inbox) Channel() string { return in.channel }

// Address is the channel to register for wake-ups; empty while the subscription is not confirmed.
func (in *Inbox) Address() string {
	if !in.started.Load() || !in.live.Load() {
		return ""
	}
	return in.channel
}

// Up reports whether messages arrive, or nobody has needed them yet.
func (in *Inbox) Up() bool { return !in.started.Load() || in.live.Load() }

// join adds the inbox's channel to the subscribed channels, and reports whether it is a new one.
func (in *Inbox) join() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.left {
		return false
	}
	in.joined = true
	in.inboxes[in.channel]++
	if in.inboxes[in.channel] > 1 {
		return false
	}
	in.version++
	return true
}

// leave takes it away again. It stays subscribed as long as the subscription does.
func (in *Inbox) leave() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.left = true
	if !in.joined {
		return
	}
	if in.inboxes[in.channel]--; in.inboxes[in.channel] == 0 {
		delete(in.inboxes, in.channel)
	}
}
