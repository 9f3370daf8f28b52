package acl

import (
	"context"
	"fmt"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// CheckChannel subscribes to the channel with a connection of its own, and publishes an empty message to it.
func CheckChannel(ctx context.Context, tasks lifecycle.Tasks, rdb script.Processor, channel string) error {
	return lifecycle.Within(ctx, tasks, left(ctx), func(ctx context.Context) error { return tryChannel(ctx, rdb, channel) })
}

func tryChannel(ctx context.Context, rdb script.Processor, channel string) error {
	sub := goredis.Subscribe(ctx, rdb, channel)
	defer sub.Close()
	if _, err := sub.Receive(ctx, left(ctx)); err != nil {
		return refusedOn("SUBSCRIBE", channel, err)
	}
	if err := send(ctx, rdb, "PUBLISH", channel, ""); err != nil {
		return refusedOn("PUBLISH", channel, err)
	}
	return nil
}

func refusedOn(command, channel string, err error) error {
	if isRefusal(err) {
		return fmt.Errorf("redis refuses the user %s on the channel %q: %w", command, channel, err)
	}
	return fmt.Errorf("cannot %s on the channel %q: %w", command, channel, err)
}
