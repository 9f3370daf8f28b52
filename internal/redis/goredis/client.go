// Package goredis is where the core knows go-redis' clients: which kind one is, what its options say, the nodes behind
// it, and its subscriptions. What all else needs of a client are commands and pipelines (package script).
//
// It is one package because of what compiling costs. A package that names a type which leads to redis.Options, as every
// kind of client and redis.PubSub do, compiles generic types of go-redis anew: 1.1 s instead of 0.1 s with go-redis
// 9.23. Only the public packages pay that, too, for the interface that a client satisfies. So the functions here are
// not inlined, and structs with such fields are not exported.
package goredis

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/config"
)

// CheckPrimary refuses a client that is nil, and one that may read from a replica, because it can return values that
// the primary has replaced. It cannot recognize a failover client that is ReplicaOnly.
//
//go:noinline
func CheckPrimary(rdb any) error {
	if err := config.CheckClient(rdb); err != nil {
		return err
	}
	switch client := rdb.(type) {
	case *redis.Client:
		for _, name := range []string{"ClientSideCache", "ClientSideCacheConfig"} { // go-redis has them since 9.22
			if f := reflect.ValueOf(client.Options()).Elem().FieldByName(name); f.IsValid() && !f.IsNil() {
				return errors.New("rdb has a client-side cache, which learns of changes too late: use a client without")
			}
		}
	case *redis.ClusterClient:
		if client.Options().ReadOnly {
			return errors.New("rdb may read from replicas (ReadOnly, RouteByLatency or RouteRandomly), where old " +
				"values linger: use a client that reads from the primaries")
		}
	}
	return nil
}

// IsSingle reports whether the client has one server, also one that a Sentinel names: it sends any command as it is.
//
//go:noinline
func IsSingle(rdb any) bool {
	_, ok := rdb.(*redis.Client)
	return ok
}

// Limiter is the Limiter in the options of a client with one server; nil if there is none.
//
//go:noinline
func Limiter(rdb any) any {
	client, ok := rdb.(*redis.Client)
	if !ok || client == nil {
		return nil
	}
	return client.Options().Limiter
}

// Where names the server or servers of a client, for people: it proves nothing, as a server has many addresses.
//
//go:noinline
func Where(rdb any) string {
	switch client := rdb.(type) {
	case single:
		o := client.Options()
		return fmt.Sprintf("%s, database %d", strings.Replace(o.Addr, "FailoverClient", "the primary that a Sentinel names", 1), o.DB)
	case interface{ Options() *redis.ClusterOptions }:
		return "the cluster of " + strings.Join(client.Options().Addrs, ", ")
	}
	return fmt.Sprintf("a %T", rdb)
}
