package plugins

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/codec"
	cached "github.com/cacheguard/go/examples/plugins/grpc"
	"github.com/cacheguard/go/internal/testing/expect"
)

// The test serves gRPC's health checks, whose messages come with gRPC.
type (
	request  = grpc_health_v1.HealthCheckRequest
	response = grpc_health_v1.HealthCheckResponse
)

// health knows services whose names are numbers, by what find says.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	*fleet
	find func() (*response, error)
}

func (h health) Check(ctx context.Context, r *request) (*response, error) {
	if r.Service == "" {
		return &response{Status: grpc_health_v1.HealthCheckResponse_UNKNOWN}, nil
	}
	h.loading(ctx, "health:"+r.Service)
	return h.find()
}

var errNoService = status.Error(codes.NotFound, "no such service")

// dialHealth starts an instance of the service for each Guard, and returns a client of each.
func dialHealth(t *testing.T, f *fleet, find func() (*response, error)) (clients [2]grpc_health_v1.HealthClient) {
	t.Helper()
	service := health{fleet: f, find: find}
	caches := newCaches(t, f, cacheguard.CacheConfig[string, *response]{
		Name: "health",
		Load: func(ctx context.Context, name string) (*response, error) {
			return service.Check(ctx, &request{Service: name})
		},
		Codec: codec.Proto(), ErrorCodec: cached.Errors{}, NotFound: errNoService, IsNotFound: cached.IsNotFound,
	})
	for i, c := range caches {
		s := grpc.NewServer(grpc.UnaryInterceptor(cached.Interceptor(map[string]cached.Read{
			grpc_health_v1.Health_Check_FullMethodName: cached.Cached(c, func(r *request) (string, bool) { return r.Service, r.Service != "" }),
		})))
		grpc_health_v1.RegisterHealthServer(s, service)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }() // owner: the test; stop: Stop; joined by receiving
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		must(t, err)
		t.Cleanup(func() { must(t, conn.Close()); s.Stop(); must(t, <-served) })
		clients[i] = grpc_health_v1.NewHealthClient(conn)
	}
	return clients
}

func TestAUnaryGRPCMethodIsLoadedOnceForAllInstances(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	clients := dialHealth(t, f, func() (*response, error) {
		return &response{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
	})
	check := func(instance int, name string) (grpc_health_v1.HealthCheckResponse_ServingStatus, error) {
		r, err := clients[instance].Check(t.Context(), &request{Service: name})
		return r.GetStatus(), err
	}
	f.share(t, func(instance, key int) error {
		got, err := check(instance, strconv.Itoa(key))
		expect.Equal(t, "status", got, grpc_health_v1.HealthCheckResponse_SERVING)
		return err
	})
	got, err := check(0, "")
	expect.ErrorIs(t, err)
	expect.Equal(t, "a request that the handler answers", got, grpc_health_v1.HealthCheckResponse_UNKNOWN)
	_, err = clients[0].List(t.Context(), &grpc_health_v1.HealthListRequest{})
	expect.Equal(t, "another method", status.Code(err), codes.Unimplemented)
}

func TestAGRPCStatusIsTheSameForTheLoaderAndTheWaiter(t *testing.T) {
	t.Parallel()
	precondition := status.New(codes.FailedPrecondition, "the shop is closed")
	precondition, err := precondition.WithDetails(&errdetails.ErrorInfo{Reason: "CLOSED", Domain: "shop"})
	must(t, err)
	f := newFleet(t)
	clients := dialHealth(t, f, func() (*response, error) { return nil, fmt.Errorf("asking the shop: %w", precondition.Err()) })
	for i, err := range f.share(t, func(instance, key int) error {
		_, err := clients[instance].Check(t.Context(), &request{Service: strconv.Itoa(key)})
		return err
	}) {
		expect.ErrorIs(t, err, precondition.Err()) // code, message and details
		expect.Equal(t, fmt.Sprint("details on instance ", i), len(status.Convert(err).Details()), 1)
	}
}

func TestWhatGRPCDoesNotFindIsTheSameErrorForAll(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	clients := dialHealth(t, f, func() (*response, error) { return nil, status.Error(codes.NotFound, "row 7 is gone") })
	for range 2 { // loaded, then remembered
		for _, client := range clients {
			f.loads.Store(1) // nobody waits
			_, err := client.Check(t.Context(), &request{Service: "404"})
			expect.ErrorIs(t, err, errNoService)
		}
	}
}
