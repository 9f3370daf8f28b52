package grpc

import (
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cacheguard/go/cacheguard"
)

// Errors lets a status travel to the instances that waited for a load: its code, its message and, if they fit, its details. It is a CacheConfig.ErrorCodec.
// The text of the message stays in Redis until the failure is forgotten.
type Errors struct{}

var _ cacheguard.ErrorCodec = Errors{}

// withStatus is an error of gRPC.
type withStatus interface {
	error
	GRPCStatus() *grpcstatus.Status
}

const most = 512 // bytes of an error that travels

// EncodeError encodes the status of the error, if it has one.
func (Errors) EncodeError(err error) []byte {
	e, is := errors.AsType[withStatus](err)
	if !is || e.GRPCStatus().Code() == codes.OK {
		return nil
	}
	s := e.GRPCStatus().Proto() // a copy
	if proto.Size(s) > most {
		s.Details = nil
	}
	if over := proto.Size(s) - most; over > 0 {
		s.Message = strings.ToValidUTF8(s.Message[:len(s.Message)-over], "")
	}
	data, err := proto.Marshal(s)
	if err != nil {
		return nil // only the text travels
	}
	return data
}

// DecodeError makes an error that errors.Is and status.Code cannot tell from the first one.
func (Errors) DecodeError(data []byte) error {
	var s status.Status
	if err := proto.Unmarshal(data, &s); err != nil {
		return nil //nolint:nilerr // it is another version's
	}
	return grpcstatus.ErrorProto(&s)
}

// Status is what a client gets for an error of a cache: the status of the loader's error, without the key, which the cache adds on the instances that waited.
func Status(err error) error {
	if e, is := errors.AsType[withStatus](err); is {
		return e
	}
	if cacheguard.ClassOf(err) == cacheguard.ClassUnavailable {
		return grpcstatus.Error(codes.Unavailable, "try again")
	}
	return grpcstatus.FromContextError(err).Err() // Unknown, if it is no context's
}

// IsNotFound is a CacheConfig.IsNotFound. Let CacheConfig.NotFound be a status with codes.NotFound, which is what callers get.
func IsNotFound(err error) bool { return grpcstatus.Code(err) == codes.NotFound }
