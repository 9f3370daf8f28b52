package goredis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
)

// The kinds of clients that tell which node serves a key: go-redis' own, and what embeds one.
type (
	single  interface{ Options() *redis.Options }
	cluster interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
		reloading
	}
	reloading interface{ ReloadState(ctx context.Context) }
	ring interface {
		GetShardClientForKey(key string) (*redis.Client, error)
		ForEachShard(ctx context.Context, fn func(ctx context.Context, shard *redis.Client) error) error
	}
)

// Node is a client of one server.
type Node interface {
	script.Processor
	script.Pipeliner
}

// NodeOf is the node that serves the key; nil: the client itself. The client of a cluster may have to ask for its nodes first.
//
//go:noinline
func NodeOf(ctx context.Context, rdb any, key string) (Node, error) {
	var node *redis.Client
	var err error
	switch rdb := rdb.(type) {
	case cluster:
		node, err = rdb.MasterForKey(ctx, key)
	case ring:
		node, err = rdb.GetShardClientForKey(key)
	}
	if err != nil || node == nil {
		return nil, err
	}
	return node, nil
}

// CheckNodes refuses a client that does not tell which node serves a key.
//
//go:noinline
func CheckNodes(rdb any) error {
	switch rdb.(type) {
	case cluster, ring, single:
		return nil
	}
	return errors.New("rdb is neither a *redis.Client, a *redis.ClusterClient nor a *redis.Ring, nor embeds one: it is not known which node has a write")
}

// ReadTimeout is how long a client with one server waits for a reply; 0: it has no limit, or is another kind of client.
//
//go:noinline
func ReadTimeout(rdb any) time.Duration {
	one, ok := rdb.(single)
	if !ok {
		return 0
	}
	return max(one.Options().ReadTimeout, 0)
}

// HasOneServer reports whether all keys are on one server, as far as the client tells.
//
//go:noinline
func HasOneServer(rdb any) bool {
	_, ok := rdb.(single)
	return ok
}

// IsCluster reports whether the client spreads keys over the nodes of a cluster.
//
//go:noinline
func IsCluster(rdb any) bool {
	_, ok := rdb.(reloading)
	return ok
}

// Reload makes the client of a cluster ask anew which node serves which slot, and others do nothing. It returns at once, and the client asks five
// times a second at most.
//
//go:noinline
func Reload(rdb any) {
	if cluster, ok := rdb.(reloading); ok {
		cluster.ReloadState(context.Background()) // the context is not used
	}
}

// IsRing reports whether the client spreads keys over servers that know nothing of each other.
//
//go:noinline
func IsRing(rdb any) bool {
	_, ok := rdb.(ring)
	return ok
}

// CheckOnePlace refuses a Ring, for what needs one place for each key. When a process does not reach a shard, its Ring uses another one for the
// shard's keys, while others go on with the first.
//
//go:noinline
func CheckOnePlace(rdb any) error {
	if IsRing(rdb) {
		return errors.New("rdb is a *redis.Ring, which uses another shard for a key when it does not reach the first, while other processes still do: " +
			"use Redis Cluster, Sentinel or a single server")
	}
	return nil
}

// Shards are the clients that together hear all that is published: those of a Ring's shards, which may change; else the client itself.
//
//go:noinline
func Shards(ctx context.Context, rdb script.Processor) map[script.Processor]struct{} {
	ring, ok := rdb.(ring)
	if !ok {
		return map[script.Processor]struct{}{rdb: {}}
	}
	var mu sync.Mutex
	shards := make(map[script.Processor]struct{})
	_ = ring.ForEachShard(ctx, func(_ context.Context, shard *redis.Client) error { // fails only if the func does
		mu.Lock()
		defer mu.Unlock()
		shards[shard] = struct{}{}
		return nil
	})
	return shards
}
