package cacheguard

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// shared is the server of the tests that neither break it nor look at its counters.
var shared *redistest.Server

// cluster is for such tests, too. The first of them starts it.
var cluster struct {
	*redistest.Cluster
	start sync.Once
	stop  func() error // nil: it has not started
	err   error
}

func sharedCluster(tb testing.TB) *redistest.Cluster {
	tb.Helper()
	cluster.start.Do(func() { cluster.Cluster, cluster.stop, cluster.err = redistest.StartClusterForMain() })
	if cluster.err != nil {
		tb.Fatal(cluster.err)
	}
	return cluster.Cluster
}

func TestMain(m *testing.M) { redistest.Main(tests{m}, &shared) }

// tests end with their cluster.
type tests struct{ *testing.M }

func (t tests) Run() (code int) {
	code = t.M.Run()
	if cluster.stop == nil {
		return code
	}
	if err := cluster.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// SharedAddr is the address of the shared server, for the examples.
func SharedAddr() string { return shared.Addr() }
