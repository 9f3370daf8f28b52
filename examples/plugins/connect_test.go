package plugins

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/codec"
	cached "github.com/cacheguard/go/examples/plugins/connect"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware"
)

// The method of the test has messages that come with Protocol Buffers: the id of a product, and its name.
type (
	id   = wrapperspb.Int64Value
	name = wrapperspb.StringValue
)

const procedure = "/shop.v1.ProductService/Name"

var errNoProduct = connect.NewError(connect.CodeNotFound, errors.New("no such product"))

// dialProducts starts an instance of the service for each Guard, and returns a client of each. Products without an id are none of the cache's.
func dialProducts(t *testing.T, f *fleet, find func() (*name, error)) (clients [2]*connect.Client[id, name]) {
	t.Helper()
	load := func(ctx context.Context, product int64) (*name, error) {
		f.loading(ctx, fmt.Sprint("name:", product))
		return find()
	}
	caches := newCaches(t, f, cacheguard.CacheConfig[int64, *name]{
		Name: "name", Load: load, Codec: codec.Proto(), ErrorCodec: cached.Errors{}, NotFound: errNoProduct, IsNotFound: cached.IsNotFound,
	})
	handler := func(context.Context, *connect.Request[id]) (*connect.Response[name], error) {
		return connect.NewResponse(wrapperspb.String("by the handler")), nil
	}
	for i, c := range caches {
		reads := map[string]cached.Read{procedure: cached.Cached(c, func(r *id) (int64, bool) { return r.Value, r.Value != 0 })}
		server := httptest.NewServer(connect.NewUnaryHandler(procedure, handler, connect.WithInterceptors(cached.Interceptor(reads))))
		t.Cleanup(server.Close)
		clients[i] = connect.NewClient[id, name](server.Client(), server.URL+procedure)
	}
	return clients
}

// ask asks an instance for a product's name.
func ask(t *testing.T, client *connect.Client[id, name], product int) (string, error) {
	r, err := client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.Int64(int64(product))))
	if err != nil {
		return "", err
	}
	return r.Msg.Value, nil
}

func TestAUnaryConnectMethodIsLoadedOnceForAllInstances(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	clients := dialProducts(t, f, func() (*name, error) { return wrapperspb.String("boot"), nil })
	f.share(t, func(instance, key int) error {
		got, err := ask(t, clients[instance], key)
		expect.Equal(t, "name", got, "boot")
		return err
	})
	got, err := ask(t, clients[0], 0)
	expect.ErrorIs(t, err)
	expect.Equal(t, "a request that names nothing", got, "by the handler")
}

func TestAConnectErrorIsTheSameForTheLoaderAndTheWaiter(t *testing.T) {
	t.Parallel()
	failure := connect.NewError(connect.CodeResourceExhausted, errors.New("too many products"))
	detail, err := connect.NewErrorDetail(wrapperspb.String("ask tomorrow"))
	must(t, err)
	failure.AddDetail(detail)
	f := newFleet(t)
	clients := dialProducts(t, f, func() (*name, error) { return nil, fmt.Errorf("asking the shop: %w", failure) })
	for i, err := range f.share(t, func(instance, key int) error {
		_, err := ask(t, clients[instance], key)
		return err
	}) {
		on := fmt.Sprint(" on instance ", i)
		expect.Equal(t, "code"+on, connect.CodeOf(err), connect.CodeResourceExhausted)
		e, is := errors.AsType[*connect.Error](err)
		if !is {
			t.Fatalf("%v is no error of Connect%s", err, on)
		}
		expect.Equal(t, "message"+on, e.Message(), "too many products")
		expect.Equal(t, "details"+on, len(e.Details()), 1)
	}
}

func TestWhatConnectDoesNotFindIsTheSameErrorForAll(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	clients := dialProducts(t, f, func() (*name, error) {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("row 7 is gone"))
	})
	for range 2 { // loaded, then remembered
		for _, client := range clients {
			f.loads.Store(1) // nobody waits
			_, err := ask(t, client, 404)
			expect.Equal(t, "error", err.Error(), errNoProduct.Error())
		}
	}
}

// A method without side effects can be called with GET: then its answers are pages like others.
func TestAConnectMethodThatIsCalledWithGETIsAPage(t *testing.T) {
	t.Parallel()
	handler := func(context.Context, *connect.Request[id]) (*connect.Response[name], error) {
		r := connect.NewResponse(wrapperspb.String("boot"))
		r.Header().Set("Cache-Control", "max-age=60")
		return r, nil
	}
	f := newFleet(t)
	pages, err := middleware.New(f.guards[0], middleware.Config{})
	must(t, err)
	readOnly := connect.WithIdempotency(connect.IdempotencyNoSideEffects)
	server := httptest.NewServer(pages.Handler(connect.NewUnaryHandler(procedure, handler, readOnly)))
	t.Cleanup(server.Close)
	client := connect.NewClient[id, name](server.Client(), server.URL+procedure, connect.WithHTTPGet(), readOnly)
	for _, want := range []string{"cacheguard; fwd=uri-miss", "cacheguard; hit"} {
		r, err := client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.Int64(42)))
		must(t, err)
		expect.Equal(t, "name", r.Msg.Value, "boot")
		status := r.Header().Get("Cache-Status")
		expect.Equal(t, status+" begins with "+want, strings.HasPrefix(status, want), true)
		f.stored(t)
	}
}
