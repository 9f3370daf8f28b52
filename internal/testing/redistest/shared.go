package redistest

import (
	"fmt"
	"os"
	"sync"
)

// StartForMain runs a redis-server for all tests or benchmarks of a package, where Main does not fit. TestMain calls stop
// after them. stop may be called again. Tests that share a server also share its counters, and one that
// kills or pauses takes a server of its own.
func StartForMain(args ...string) (s *Server, stop func(), err error) {
	n, err := launch(serverArguments(args))
	if err != nil {
		return nil, nil, err
	}
	return &Server{node: n}, sync.OnceFunc(func() {
		if err := n.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}), nil
}
