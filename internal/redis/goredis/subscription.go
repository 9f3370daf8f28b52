package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrClosed is what Receive returns once the subscription was closed.
var ErrClosed = errors.New("the subscription is closed")

// Subscription is a subscription to channels, with a connection of its own. It is an interface because the fields of a
// struct are known wherever that is.
type Subscription interface {
	// Receive waits for what comes in next, for as long as patience says; 0: without end.
	Receive(ctx context.Context, patience time.Duration) (Event, error)
	// Close ends the subscription. Once more does nothing.
	Close()
}

// subscription is a Subscription of a client; sub is nil if that cannot subscribe.
type subscription struct{ sub *redis.PubSub }

// Event is what comes in: a message, the confirmation of one channel, or neither, as a pong is.
type Event struct {
	Confirmed        bool
	Message          bool
	Channel, Payload string
}

// Subscribe begins to subscribe to the channels. The public packages ask for a client that can; from any other nothing
// can be received.
//
//go:noinline
func Subscribe(ctx context.Context, rdb any, channels ...string) Subscription {
	if rdb, ok := rdb.(interface {
		Subscribe(ctx context.Context, channels ...string) *redis.PubSub
	}); ok {
		return subscription{rdb.Subscribe(ctx, channels...)}
	}
	return subscription{}
}

func (s subscription) Receive(ctx context.Context, patience time.Duration) (Event, error) {
	if s.sub == nil {
		return Event{}, fmt.Errorf("rdb: %w: it has no Subscribe", errors.ErrUnsupported)
	}
	got, err := s.sub.ReceiveTimeout(ctx, patience)
	switch {
	case errors.Is(err, redis.ErrClosed), errors.Is(err, net.ErrClosed):
		return Event{}, ErrClosed
	case err != nil:
		return Event{}, err
	}
	switch m := got.(type) {
	case *redis.Subscription:
		return Event{Confirmed: true, Channel: m.Channel}, nil
	case *redis.Message:
		return Event{Message: true, Channel: m.Channel, Payload: m.Payload}, nil
	}
	return Event{}, nil
}

func (s subscription) Close() {
	if s.sub != nil {
		_ = s.sub.Close() // twice closed says so and does nothing
	}
}
