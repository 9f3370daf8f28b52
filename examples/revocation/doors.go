package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cacheguard/go/cacheguard"
)

// Needs is a middleware of chi and net/http: it admits requests with the permission.
func (a *Access) Needs(permission string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := a.Admit(r.Context(), bearer(r.Header.Get("Authorization")), permission)
			switch class := cacheguard.ClassOf(err, ErrUnknown); {
			case class == cacheguard.ClassNone:
				next.ServeHTTP(w, r)
			case class == cacheguard.ClassAbsent:
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "sign in", http.StatusUnauthorized)
			case errors.Is(err, ErrForbidden):
				http.Error(w, "not yours", http.StatusForbidden)
			default: // Redis or the database fails: nobody knows
				w.Header().Set("Retry-After", "1")
				http.Error(w, "try again", http.StatusServiceUnavailable)
			}
		})
	}
}

// Interceptor does the same for gRPC. A method that needs does not name is refused.
func (a *Access) Interceptor(needs map[string]string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		permission, named := needs[info.FullMethod]
		if !named {
			return nil, status.Error(codes.PermissionDenied, "not yours")
		}
		var token string
		if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) == 1 {
			token = bearer(values[0])
		}
		err := a.Admit(ctx, token, permission)
		switch class := cacheguard.ClassOf(err, ErrUnknown); {
		case class == cacheguard.ClassNone:
			return handler(ctx, req)
		case class == cacheguard.ClassAbsent:
			return nil, status.Error(codes.Unauthenticated, "sign in")
		case errors.Is(err, ErrForbidden):
			return nil, status.Error(codes.PermissionDenied, "not yours")
		default:
			return nil, status.Error(codes.Unavailable, "try again")
		}
	}
}

func bearer(field string) string {
	token, _ := strings.CutPrefix(field, "Bearer ")
	return token
}
