package wake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// How closely a subscription is watched.
const (
	confirmDeadline = 2 * time.Second  // how long a subscription may take to be confirmed, whatever else it brings
	checkEvery      = time.Second      // how often the watchdog looks
	busySilence     = 2 * time.Second  // silence that asks for a probe while messages are relied on
	idleSilence     = 30 * time.Second // and while they are not
	busyFor         = time.Minute      // how long after a wait they still count as relied on
	probeDeadline   = time.Second      // how long a probe may take to be published, and then to come back
	maxRedialWait   = time.Second      // the longest pause between attempts to subscribe
)

// link is the subscription on one node.
type link struct {
	in   *hub
	node Redis
	ctx  context.Context //nolint:containedctx // the life of its two goroutines
	stop context.CancelFunc

	confirmed atomic.Bool
	mute      atomic.Bool   // its last subscription was confirmed and brought nothing, so that the next one counts once it does
	heard     atomic.Int64  // when anything last came in, by clock.Mono
	hearing   chan struct{} // signalled when heard changes; size 1

	mu  sync.Mutex
	sub goredis.Subscription // the current subscription, to be closed by the watchdog
}

// Why a subscription is replaced that its connection does not end.
var (
	errSilent      = errors.New("messages that were published did not arrive")
	errUnconfirmed = errors.New("it was not confirmed")
)

func newLink(in *hub, node Redis) *link {
	l := &link{in: in, node: node, hearing: make(chan struct{}, 1)}
	l.ctx, l.stop = context.WithCancel(in.life.Ending)
	return l
}

// receive subscribes, and subscribes anew whenever the subscription was closed, until the link is stopped.
func (l *link) receive() {
	defer l.drop(nil)
	pause := 10 * time.Millisecond
	for l.ctx.Err() == nil {
		stood, why := l.serve()
		if stood {
			pause = 10 * time.Millisecond
		} else if why != nil && l.ctx.Err() == nil {
			l.in.failed(why)
		}
		l.drop(why)
		lifecycle.Sleep(l.ctx, pause)
		pause = min(2*pause, maxRedialWait)
	}
}

// serve reads one subscription until it fails, and reports whether it ever stood, and why it failed; nil: it was
// closed. The library's own loop, because the channel of go-redis drops messages, and its reconnect is not seen.
func (l *link) serve() (stood bool, why error) {
	channels, version := l.in.channels()
	sub := goredis.Subscribe(l.ctx, l.node, channels...)
	l.mu.Lock()
	l.sub = sub
	l.mu.Unlock()
	if _, now := l.in.channels(); now != version {
		sub.Close() // there is one more channel, and renew may have come before this subscription
		return false, nil
	}
	awaited := len(channels)
	unhook := context.AfterFunc(l.ctx, sub.Close)
	defer unhook()
	defer sub.Close()
	due := clock.Mono() + confirmDeadline
	for {
		patience := time.Duration(0) // silence is for the watchdog, once it stands
		if !stood {
			patience = due - clock.Mono()
		}
		if patience < 0 {
			return stood, fmt.Errorf("subscribe to %s: %w", strings.Join(channels, ", "), errUnconfirmed)
		}
		got, err := sub.Receive(l.ctx, patience)
		switch {
		case errors.Is(err, goredis.ErrClosed):
			return stood, nil
		case err != nil:
			return stood, fmt.Errorf("subscribe to %s: %w", strings.Join(channels, ", "), err)
		}
		l.hear()
		switch {
		case got.Confirmed:
			if awaited--; awaited > 0 {
				continue
			}
			if _, now := l.in.channels(); now != version {
				return stood, nil // without the new channel it does not count; renew may be on its way
			}
			if stood = true; l.mute.Load() {
				l.publish()
				continue
			}
			l.confirm()
		case got.Message:
			if stood && l.mute.Swap(false) {
				l.confirm()
			}
			l.in.dispatch(got.Channel, got.Payload)
		}
	}
}

func (l *link) hear() {
	l.heard.Store(int64(clock.Mono()))
	select {
	case l.hearing <- struct{}{}:
	default: // told already
	}
}

func (l *link) confirm() {
	if l.confirmed.Swap(true) {
		l.in.resubscribed() // go-redis reconnected by itself
		return
	}
	l.in.changed(nil)
}

func (l *link) drop(why error) {
	if l.confirmed.Swap(false) {
		l.in.changed(why)
	}
}

// watch probes a silent subscription, and closes one that stays silent so that receive makes a new one.
func (l *link) watch() {
	for lifecycle.Sleep(l.ctx, checkEvery) {
		if (l.mute.Load() || l.confirmed.Load() && l.silence() > l.patience()) && !l.probe() {
			l.mute.Store(true)
			l.drop(errSilent) // now, as go-redis may be dialling, and holds renew up as long
			l.renew()
		}
	}
}

// renew closes the subscription, so that receive makes a new one.
func (l *link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sub != nil {
		l.sub.Close() // already closed is as good
	}
}

func (l *link) silence() time.Duration {
	return clock.Mono() - time.Duration(l.heard.Load())
}

func (l *link) patience() time.Duration {
	if l.in.listening() || clock.Mono()-time.Duration(l.in.lastWaiting.Load()) < busyFor {
		return busySilence
	}
	return idleSilence
}

// probe publishes to the inbox and reports whether anything came in before the deadline. When Redis refuses to publish,
// nothing is known of the subscription, and it is left alone. When it cannot be asked, it delivers nothing either.
func (l *link) probe() (heard bool) {
	select {
	case <-l.hearing: // old news
	default:
	}
	published := l.publish()
	for deadline := time.After(2 * probeDeadline); ; {
		select {
		case <-l.hearing:
			return true
		case <-l.ctx.Done():
			return true
		case err := <-published:
			if err != nil {
				_, refused := script.Answer(err)
				if refused && l.mute.Swap(false) {
					l.renew()
				}
				return refused
			}
			deadline = time.After(probeDeadline)
		case <-deadline:
			return false
		}
	}
}

// publish publishes a probe without holding the watchdog up: go-redis lets no context interrupt it.
func (l *link) publish() <-chan error {
	done := make(chan error, 1)
	l.in.life.Go(func() { // stop: probeDeadline, or the client's time-outs; joined by close
		ctx, cancel := context.WithTimeout(l.ctx, probeDeadline)
		defer cancel()
		done <- script.Send(ctx, l.node, "publish", l.in.anyInbox(), Frame("", "")).Err()
	})
	return done
}
