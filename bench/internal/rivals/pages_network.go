package rivals

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// OverNetwork asks for the pages of a library through a server, connections and a client of net/http.
func OverNetwork(lib CacheLibrary) CacheLibrary {
	open := lib.Open
	lib.Open = func(s Setup) (Cache, error) {
		c, err := open(s)
		if err != nil {
			return nil, err
		}
		return serve(c.(*site))
	}
	return lib
}

// remote is a site on the loopback interface.
type remote struct {
	*site
	host      string
	server    *http.Server
	served    chan error
	transport *http.Transport
	loaders   sync.Map // the last of each key, as they cannot be sent
}

func serve(s *site) (Cache, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	const connections = 1000 // more than there are callers
	c := &remote{
		site: s, host: l.Addr().String(), served: make(chan error, 1),
		transport: &http.Transport{MaxIdleConnsPerHost: connections},
	}
	c.server = &http.Server{Handler: http.HandlerFunc(c.handle), ReadHeaderTimeout: 10 * time.Second}
	go func() { c.served <- c.server.Serve(l) }() // owner: remote; stop: Close; joined there
	return c, nil
}

func (c *remote) handle(w http.ResponseWriter, r *http.Request) {
	load, _ := c.loaders.Load(strings.TrimPrefix(r.URL.Path, path))
	c.handler.ServeHTTP(w, r.WithContext(load.(Loader).with(r.Context())))
}

func (c *remote) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	c.loaders.Store(key, load)
	r := pageRequest(ctx, key)
	r.URL.Scheme, r.URL.Host = "http", c.host
	got, err := download(c.transport, r)
	if err != nil {
		return nil, err
	}
	return got.page(key)
}

func (c *remote) Close() error {
	c.transport.CloseIdleConnections()
	err := c.server.Close()
	if e := <-c.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, c.site.Close())
}
