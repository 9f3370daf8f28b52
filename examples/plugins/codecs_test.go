package plugins

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cacheguard/go/cacheguard"
	connectcached "github.com/cacheguard/go/examples/plugins/connect"
	grpccached "github.com/cacheguard/go/examples/plugins/grpc"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestALargeErrorTravelsWithoutWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	const room = 512
	long := strings.Repeat("ä", room) // of two bytes each
	withDetails, err := status.New(codes.Aborted, "busy").WithDetails(wrapperspb.String(long))
	must(t, err)
	connectWithDetails := connect.NewError(connect.CodeAborted, errors.New("busy"))
	detail, err := connect.NewErrorDetail(wrapperspb.String(long))
	must(t, err)
	connectWithDetails.AddDetail(detail)

	grpcCode := func(err error) string { return status.Code(err).String() }
	connectCode := func(err error) string { return connect.CodeOf(err).String() }
	for _, c := range []struct {
		codec cacheguard.ErrorCodec
		err   error
		code  func(error) string
	}{
		{grpccached.Errors{}, withDetails.Err(), grpcCode},
		{grpccached.Errors{}, fmt.Errorf("row 7: %w", status.Error(codes.Aborted, long)), grpcCode},
		{connectcached.Errors{}, connectWithDetails, connectCode},
		{connectcached.Errors{}, fmt.Errorf("row 7: %w", connect.NewError(connect.CodeAborted, errors.New("x"+long))), connectCode},
		{connectcached.Errors{}, connect.NewError(connect.CodeAborted, errors.New("no \xff text")), connectCode},
	} {
		data := c.codec.EncodeError(c.err)
		if len(data) == 0 || len(data) > room {
			t.Errorf("%d bytes of %.40v, want 1 to %d", len(data), c.err, room)
		}
		expect.Equal(t, "code", c.code(c.codec.DecodeError(data)), c.code(c.err))
	}
}

func TestOtherErrorsTravelAsText(t *testing.T) {
	t.Parallel()
	for _, codec := range []cacheguard.ErrorCodec{grpccached.Errors{}, connectcached.Errors{}} {
		expect.Equal(t, fmt.Sprintf("%T: bytes", codec), len(codec.EncodeError(errors.New("plain"))), 0)
		expect.ErrorIs(t, codec.DecodeError([]byte("of another version")))
	}
	expect.Equal(t, "a deadline", status.Code(grpccached.Status(context.DeadlineExceeded)), codes.DeadlineExceeded)
	expect.Equal(t, "another error", status.Code(grpccached.Status(errors.New("plain"))), codes.Unknown)
}
