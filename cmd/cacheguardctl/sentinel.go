package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/serverinfo"
)

// noPrimary says that the Sentinels that answer do not know the name in the URL: no Redis answers PING with nothing.
func noPrimary(raw string, reached error) error {
	if !errors.Is(reached, redis.Nil) {
		return nil
	}
	return fmt.Errorf("REDIS_URL: %s answers, and knows no primary of the name that the URL has behind it: SENTINEL MASTERS there lists names", hostsOf(raw))
}

// noSentinel says that the URL names a Sentinel as if it were a Redis, and how to write it. A Sentinel answers PING, but it knows neither the command that a
// client of a cluster begins with nor SELECT, and it may have no users: it is asked as the user of the URL, and as nobody.
func noSentinel(ctx context.Context, rdb redis.UniversalClient, raw string, reached error) error {
	var o redis.Options
	switch rdb := rdb.(type) {
	case *redis.Client:
		if o = *rdb.Options(); reached == nil && !lacksSlots(ctx, rdb) {
			return nil
		}
	case *redis.ClusterClient:
		c := rdb.Options()
		o = redis.Options{
			Addr: c.Addrs[0], Username: c.Username, Password: c.Password, TLSConfig: c.TLSConfig, ReadTimeout: c.ReadTimeout, DialerRetries: 1, DisableIdentity: true,
		}
		if reached == nil {
			return nil
		}
	}
	if isUnreachable(reached) {
		return nil
	}
	o.DB = 0
	nobody := o
	nobody.Username, nobody.Password = "", ""
	for _, as := range []*redis.Options{&o, &nobody} {
		if name, is := watchedBy(ctx, as); is {
			scheme, _, _ := strings.Cut(raw, "://")
			const form = "REDIS_URL names a Sentinel as if it were a Redis: write %s+sentinel://%s/%s, with the name of the primary last, and the user and the password of Redis before the @"
			return fmt.Errorf(form, scheme, hostsOf(raw), name)
		}
	}
	return nil
}

// lacksSlots reports whether the server does not know the question, which one without a cluster knows, and refuses.
func lacksSlots(ctx context.Context, rdb *redis.Client) bool {
	err := rdb.ClusterSlots(ctx).Err() //nolint:staticcheck // it is what a client of a cluster asks
	return err != nil && strings.Contains(err.Error(), "unknown command")
}

// watchedBy returns the name of the primary that a Sentinel watches, or NAME if there is not one; is is false if the server is no Sentinel.
func watchedBy(ctx context.Context, o *redis.Options) (name string, is bool) {
	rdb := redis.NewClient(o)
	defer rdb.Close()
	if serverinfo.Ask(ctx, rdb).Mode != "sentinel" {
		return "", false
	}
	info, err := infoOf(ctx, rdb)
	first, _, _ := strings.Cut(info["master0"], ",")
	if name = strings.TrimPrefix(first, "name="); err != nil || name == "" || info["master1"] != "" {
		name = "NAME"
	}
	return name, true
}
