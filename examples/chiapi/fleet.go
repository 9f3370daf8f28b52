package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
)

const instances = 3

// stage is what the fleets share.
type stage struct {
	redis *backends.RedisServer
	db    *sqldb.DB
	shop  *shop
}

// fleet is the instances, and the proxy in front of them.
type fleet struct {
	*server   // the proxy
	instances []*instance
	calls     *calls
	prefix    string
	redis     *backends.RedisServer
	transport *http.Transport // from the proxy to the instances
}

// start starts a fleet: the proxy on the port, the instances on the next ones. Port 0 is any that are free.
func (st stage) start(ctx context.Context, port int, cached bool) (_ *fleet, err error) {
	f := &fleet{
		calls:     newCalls(),
		prefix:    "chiapi-" + strings.ToLower(rand.Text()[:10]), // a real Redis may have other users
		redis:     st.redis,
		transport: &http.Transport{MaxIdleConnsPerHost: 1000},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	targets := make([]*url.URL, instances)
	for n := range targets {
		at := 0
		if port != 0 {
			at = port + 1 + n
		}
		i, err := f.startInstance(ctx, st, n+1, at, cached)
		if err != nil {
			return nil, err
		}
		f.instances = append(f.instances, i)
		if targets[n], err = url.Parse(i.url); err != nil {
			return nil, err
		}
	}
	f.server, err = listen(ctx, port, f.proxy(targets))
	return f, err
}

// proxy asks the instances in turn. It passes the Host on: that is part of a page's key, and pages are to be shared.
func (f *fleet) proxy(targets []*url.URL) http.Handler {
	var turn atomic.Int64
	return &httputil.ReverseProxy{
		Transport: f.transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(targets[int(turn.Add(1)-1)%len(targets)])
			r.Out.Host = r.In.Host
		},
	}
}

// stop stops the proxy first, so that nobody is sent to an instance that has gone.
func (f *fleet) stop() error {
	var errs []error
	if f.server != nil {
		errs = append(errs, f.server.stop())
	}
	f.transport.CloseIdleConnections()
	for _, i := range f.instances {
		errs = append(errs, i.stop())
	}
	return errors.Join(append(errs, f.redis.Delete(context.Background(), f.prefix+":"))...)
}
