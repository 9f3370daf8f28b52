// Package grpc answers unary gRPC methods that only read from caches. Use it where many clients ask for the same things, and a method's answer depends on its
// request alone. Methods that write, that stream, or that answer each caller differently keep their handlers: leave them out.
//
// The interceptor stands behind authentication, because a hit runs nothing that comes after it. A load is shared by its callers, so what it calls must
// not look at one caller's metadata. Headers and trailers that a handler sets are not part of what is cached.
package grpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/cacheguard/go/cacheguard"
)

// Read answers the requests of one method, or hands them to the handler.
type Read func(ctx context.Context, req any, handler grpc.UnaryHandler) (any, error)

// Cached answers from the cache what key names, and hands the other requests to the handler. Callers share the answer, so nothing behind it may change it.
func Cached[K comparable, Req, Resp proto.Message](cache *cacheguard.Cache[K, Resp], key func(Req) (K, bool)) Read {
	return func(ctx context.Context, req any, handler grpc.UnaryHandler) (any, error) {
		r, is := req.(Req)
		if !is {
			return handler(ctx, req)
		}
		k, named := key(r)
		if !named {
			return handler(ctx, req)
		}
		resp, err := cache.Get(ctx, k)
		if err != nil {
			return nil, Status(err)
		}
		return resp, nil
	}
}

// Interceptor answers the methods that reads has, under names such as /grpc.health.v1.Health/Check.
func Interceptor(reads map[string]Read) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if read := reads[info.FullMethod]; read != nil {
			return read(ctx, req, handler)
		}
		return handler(ctx, req)
	}
}
