// Package connect answers unary Connect methods that only read from caches. Use it where many clients ask for the same things, and a method's answer depends on
// its request alone. Methods that write, that stream, or that answer each caller differently keep their handlers: leave them out.
//
// The interceptor stands behind authentication, because a hit runs nothing that comes after it. A load is shared by its callers, so what it calls must
// not look at one caller's headers. Headers and trailers that a handler sets are not part of what is cached.
package connect

import (
	"context"

	"connectrpc.com/connect"

	"github.com/cacheguard/go/cacheguard"
)

// Read answers the requests of one method, or hands them to the handler.
type Read func(ctx context.Context, req connect.AnyRequest, handler connect.UnaryFunc) (connect.AnyResponse, error)

// Cached answers from the cache what key names, and hands the other requests to the handler. Callers share the answer, so nothing behind it may change it.
func Cached[K comparable, Req, Resp any](cache *cacheguard.Cache[K, *Resp], key func(*Req) (K, bool)) Read {
	return func(ctx context.Context, req connect.AnyRequest, handler connect.UnaryFunc) (connect.AnyResponse, error) {
		r, is := req.Any().(*Req)
		if !is {
			return handler(ctx, req)
		}
		k, named := key(r)
		if !named {
			return handler(ctx, req)
		}
		resp, err := cache.Get(ctx, k)
		if err != nil {
			return nil, err // Connect sends the *connect.Error within, and nothing of what is around it
		}
		return connect.NewResponse(resp), nil
	}
}

// Interceptor answers the procedures that reads has, under names such as /shop.v1.ProductService/GetProduct.
func Interceptor(reads map[string]Read) connect.UnaryInterceptorFunc {
	return func(handler connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if read := reads[req.Spec().Procedure]; read != nil {
				return read(ctx, req, handler)
			}
			return handler(ctx, req)
		}
	}
}
