package connect

import (
	"errors"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/cacheguard/go/cacheguard"
)

// Errors lets Connect's errors travel to the instances that waited for a load: their code, message and, if they fit, details; not their headers. It is a
// CacheConfig.ErrorCodec. The text of the message stays in Redis until the failure is forgotten.
type Errors struct{}

var _ cacheguard.ErrorCodec = Errors{}

const most = 512 // bytes of an error that travels

// EncodeError encodes the *connect.Error in the error, if there is one.
func (Errors) EncodeError(err error) []byte {
	e, is := errors.AsType[*connect.Error](err)
	if !is {
		return nil
	}
	s := &status.Status{Code: int32(e.Code()), Message: strings.ToValidUTF8(e.Message(), "")}
	for _, d := range e.Details() {
		s.Details = append(s.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type(), Value: d.Bytes()})
	}
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

// DecodeError makes a *connect.Error with the same code, message and details.
func (Errors) DecodeError(data []byte) error {
	var s status.Status
	if err := proto.Unmarshal(data, &s); err != nil {
		return nil //nolint:nilerr // it is another version's
	}
	e := connect.NewError(connect.Code(s.Code), errors.New(s.Message))
	for _, d := range s.Details {
		if detail, err := connect.NewErrorDetail(d); err == nil {
			e.AddDetail(detail)
		}
	}
	return e
}

// IsNotFound is a CacheConfig.IsNotFound. Let CacheConfig.NotFound be an error with connect.CodeNotFound, which is what callers get.
func IsNotFound(err error) bool { return connect.CodeOf(err) == connect.CodeNotFound }
