package redistest

import (
	"errors"
	"sync"
	"testing"
)

// common is something for the tests of a package that neither break it nor look at its counters, as the shared server is. The first of them
// starts it, and it ends with the tests.
type common[S any] struct {
	start func() (s S, stop func() error, err error)
	once  sync.Once
	it    S
	err   error
}

func (c *common[S]) get(tb testing.TB) S {
	tb.Helper()
	c.once.Do(func() {
		var stop func() error
		if c.it, stop, c.err = c.start(); c.err == nil {
			started.add(stop)
		}
	})
	if c.err != nil {
		tb.Fatal(c.err)
	}
	return c.it
}

// started are the ends of what tests have in common.
var started stops

type stops struct {
	mu  sync.Mutex
	all []func() error
}

func (s *stops) add(stop func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, stop)
}

func (s *stops) run() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stop := range s.all {
		err = errors.Join(err, stop())
	}
	s.all = nil
	return err
}

var (
	cluster    = common[*Cluster]{start: StartClusterForMain}
	serverless = common[*Serverless]{start: startServerlessForMain}
	others     = [4]common[*Server]{{start: startForTests}, {start: startForTests}, {start: startForTests}, {start: startForTests}}
)

// SharedCluster is a cluster of three masters for the tests of a package with Main: it takes a second to start.
func SharedCluster(tb testing.TB) *Cluster {
	tb.Helper()
	return cluster.get(tb)
}

// SharedServerless is a Serverless for the tests of a package with Main, who make no rules for its proxy.
func SharedServerless(tb testing.TB) *Serverless {
	tb.Helper()
	return serverless.get(tb)
}

// SharedServers are up to five servers for the tests of a package with Main, whose shared server is the first of them.
func SharedServers(tb testing.TB, n int) []*Server {
	tb.Helper()
	all := []*Server{ofMain}
	for i := range n - 1 {
		all = append(all, others[i].get(tb))
	}
	return all
}

func startForTests() (s *Server, stop func() error, err error) {
	n, err := launch(serverArguments(nil))
	if err != nil {
		return nil, nil, err
	}
	return &Server{node: n}, n.close, nil
}
