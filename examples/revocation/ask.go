package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// maxLag is the default of LocalConfig.MaxLag.
const maxLag = time.Second

// feedBehind is for what a feed revokes: nothing is promised but that it comes.
const feedBehind = time.Minute

// revocation is one way to take something back. No request is admitted that begins later than bound after revoke returned.
type revocation struct {
	what, token string
	revoke      func(context.Context) error
	bound       time.Duration
}

func revocations(a *Access) []revocation {
	return []revocation{
		{"an API key, by Update", "key_1", func(ctx context.Context) error { return a.RevokeKey(ctx, "key_1") }, 0},
		{"a session, by Update", "session_2", func(ctx context.Context) error { return a.SignOut(ctx, "session_2") }, maxLag},
		{"a user, by Intend", "session_3", func(ctx context.Context) error { return a.Dismiss(ctx, 3) }, 0},
		{"a permission, by SQL", "session_4", func(ctx context.Context) error {
			_, err := a.db.ExecContext(ctx, `DELETE FROM permissions WHERE user_id = 4`)
			return err
		}, feedBehind},
	}
}

// seed gives each user what is taken from him.
func seed(ctx context.Context, a *Access) error {
	ends := time.Now().Add(time.Hour).Unix()
	for user := 1; user <= 4; user++ {
		for statement, args := range map[string][]any{
			`INSERT INTO permissions VALUES ($1, 'orders.read')`: {user},
			`INSERT INTO api_keys VALUES ($1, $2)`:               {hash(fmt.Sprint("key_", user)), user},
			`INSERT INTO sessions VALUES ($1, $2, $3)`:           {hash(fmt.Sprint("session_", user)), user, ends},
		} {
			if _, err := a.db.ExecContext(ctx, statement, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// show warms both doors, revokes, and asks until both refuse.
func (r revocation) show(ctx context.Context, out io.Writer, d *doors) error {
	for range 3 { // loaded, stored, kept in the tier
		if byHTTP, byGRPC, err := d.ask(ctx, r.token); err != nil || !byHTTP || !byGRPC {
			return errors.Join(errors.New("refused before it is revoked"), err)
		}
	}
	if err := r.revoke(ctx); err != nil {
		return err
	}
	return report(ctx, out, r.what, r.bound, func(ctx context.Context) (bool, error) {
		byHTTP, byGRPC, err := d.ask(ctx, r.token)
		return byHTTP || byGRPC, err
	})
}

// report asks until nothing is admitted, and says how long that took, from now on.
func report(ctx context.Context, out io.Writer, what string, bound time.Duration, admits func(context.Context) (bool, error)) error {
	last, err := lastAdmitted(ctx, admits, time.Now())
	took := "at once"
	if last > 0 {
		took = "after " + last.Round(10*time.Microsecond).String()
	}
	_, _ = fmt.Fprintf(out, "  %-22s  %s\n", what, took)
	if err == nil && last > bound {
		err = fmt.Errorf("a request was admitted that began %v after that", last)
	}
	return err
}

// lastAdmitted is how long after that the last request began that was admitted; 0: none was.
func lastAdmitted(ctx context.Context, admits func(context.Context) (bool, error), after time.Time) (last time.Duration, err error) {
	for {
		began := time.Since(after)
		if ok, err := admits(ctx); err != nil || !ok {
			return last, err
		}
		last = began
	}
}

// doors are the servers of an instance, and a client of each.
type doors struct {
	web     *http.Server
	url     string
	rpc     *grpc.Server
	conn    *grpc.ClientConn
	served  chan error
	clients http.Client
}

func openDoors(ctx context.Context, a *Access) (*doors, error) {
	var listen net.ListenConfig
	var listeners [2]net.Listener
	for i := range listeners {
		l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners[i] = l
	}
	router := chi.NewRouter()
	router.With(a.Needs("orders.read")).Get("/orders", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "orders\n") })
	d := &doors{
		web: &http.Server{Handler: router, ReadHeaderTimeout: time.Minute}, url: "http://" + listeners[0].Addr().String() + "/orders",
		rpc:    grpc.NewServer(grpc.UnaryInterceptor(a.Interceptor(map[string]string{grpc_health_v1.Health_Check_FullMethodName: "orders.read"}))),
		served: make(chan error, 2),
	}
	grpc_health_v1.RegisterHealthServer(d.rpc, health{})
	conn, err := grpc.NewClient(listeners[1].Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	d.conn = conn
	go func() { d.served <- d.web.Serve(listeners[0]) }() // owner: run; stop: close; joined there
	go func() { d.served <- d.rpc.Serve(listeners[1]) }() // the same
	return d, nil
}

func (d *doors) close() error {
	d.rpc.Stop()
	d.clients.CloseIdleConnections()
	errs := []error{d.conn.Close(), d.web.Close()}
	for range cap(d.served) {
		if err := <-d.served; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ask asks with the token at both doors.
func (d *doors) ask(ctx context.Context, token string) (byHTTP, byGRPC bool, err error) {
	byHTTP, err1 := d.byHTTP(ctx, token)
	byGRPC, err2 := d.byGRPC(ctx, token)
	return byHTTP, byGRPC, errors.Join(err1, err2)
}

func (d *doors) byHTTP(ctx context.Context, token string) (admitted bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, http.NoBody)
	if err != nil {
		return false, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := d.clients.Do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return false, nil
	}
	return false, errors.New(resp.Status)
}

func (d *doors) byGRPC(ctx context.Context, token string) (admitted bool, err error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	_, err = grpc_health_v1.NewHealthClient(d.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	switch status.Code(err) {
	case codes.OK:
		return true, nil
	case codes.Unauthenticated, codes.PermissionDenied:
		return false, nil
	}
	return false, err
}

// health is a service that comes with gRPC.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}
