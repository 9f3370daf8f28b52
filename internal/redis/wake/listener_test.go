package wake_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// ear notes what a listener hears.
type ear struct {
	mu     sync.Mutex
	heard  []string
	missed int
	live   []bool // whether the inbox was live when the listener was told that it had missed messages
}

func listen(t *testing.T, in *wake.Inbox, channel string) *ear {
	t.Helper()
	e := new(ear)
	l := &wake.Listener{
		Heard: func(payload string) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.heard = append(e.heard, payload)
		},
		Missed: func(bool) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.missed++
			e.live = append(e.live, in.Live())
		},
	}
	in.Listen(channel, l)
	t.Cleanup(l.Stop)
	return e
}

func (e *ear) await(t *testing.T, n int) {
	t.Helper()
	redistest.Await(t, "messages are heard", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.heard) == n
	})
}

func (e *ear) misses() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.missed
}

func shout(t *testing.T, rdb *redis.Client, channel, payload string) {
	t.Helper()
	expect.Must(t, rdb.Publish(t.Context(), channel, payload).Err())
}

func awaitLive(t *testing.T, in *wake.Inbox) {
	t.Helper()
	redistest.Await(t, "the inbox is live", in.Live)
}

func TestListenersHearAllMessagesOfTheirChannel(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := open(t, rdb)
	channel := t.Name()
	one, two, other := listen(t, in, channel), listen(t, in, channel), listen(t, in, channel+"2")
	in.Start()
	awaitLive(t, in)
	for _, payload := range []string{"a", "", "\x00b"} {
		shout(t, rdb, channel, payload)
	}
	shout(t, rdb, channel+"2", "c")
	one.await(t, 3)
	two.await(t, 3)
	other.await(t, 1)
	if one.heard[0] != "a" || one.heard[1] != "" || one.heard[2] != "\x00b" || other.heard[0] != "c" {
		t.Errorf("heard %q and %q", one.heard, other.heard)
	}
}

func TestChannelMayComeWhenTheSubscriptionStands(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := listening(t, rdb)
	w := watch(t, in, "k")
	e := listen(t, in, t.Name())
	if in.Live() {
		t.Fatal("live without a subscription to the new channel")
	}
	receives(t, w, askAgain)
	awaitLive(t, in)
	shout(t, rdb, t.Name(), "a")
	e.await(t, 1)
	if e.misses() == 0 || e.live[0] {
		t.Errorf("the listener was told %d times, when the inbox was live: %v", e.missed, e.live)
	}
}

// go-redis holds the subscription's mutex while it dials.
func TestListenDoesNotWaitForAConnection(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	in := listening(t, p.Client(t))
	p.BlackHole(true)
	p.Cut()
	dials := p.Commands()["hello"]
	redistest.Await(t, "it dials", func() bool { return p.Commands()["hello"] > dials })
	listening := make(chan struct{})
	go func() { // owner: the test; ends with Listen; joined by receiving
		defer close(listening)
		l := &wake.Listener{Heard: func(string) {}, Missed: func(bool) {}}
		in.Listen(t.Name(), l)
		l.Stop()
	}()
	defer func() { // lets the inbox close
		p.Cut()
		<-listening
	}()
	select {
	case <-listening:
	case <-time.After(redistest.Patience):
		t.Error("Listen waits")
	}
}

func TestChannelsThatComeWhileTheInboxSubscribesAreNotForgotten(t *testing.T) {
	t.Parallel()
	for range 20 {
		rdb := shared.Client(t)
		in := open(t, rdb)
		in.Start()
		var ears []*ear
		for _, name := range []string{"1", "2", "3"} {
			ears = append(ears, listen(t, in, t.Name()+name))
		}
		awaitLive(t, in)
		for i, name := range []string{"1", "2", "3"} {
			shout(t, rdb, t.Name()+name, "a")
			ears[i].await(t, 1)
		}
	}
}

func TestListenerLearnsThatMessagesWereLostBeforeTheInboxIsLiveAgain(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	in := open(t, proxy.Client(t))
	e := listen(t, in, t.Name())
	in.Start()
	awaitLive(t, in)
	before := e.misses()
	proxy.Cut()
	redistest.Await(t, "the listener is told", func() bool { return e.misses() > before })
	awaitLive(t, in)
	shout(t, shared.Client(t), t.Name(), "a")
	e.await(t, 1)
	for _, live := range e.live {
		if live {
			t.Error("the inbox was live when the listener was told")
		}
	}
}

func TestListenerThatHasStoppedHearsNothing(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	in := open(t, rdb)
	l := &wake.Listener{Heard: func(string) { t.Error("heard") }, Missed: func(bool) {}}
	in.Listen(t.Name(), l)
	e := listen(t, in, t.Name())
	in.Start()
	awaitLive(t, in)
	l.Stop()
	shout(t, rdb, t.Name(), "a")
	e.await(t, 1)
}
