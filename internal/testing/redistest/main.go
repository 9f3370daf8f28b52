package redistest

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/internal/testing/leaks"
)

// Main is the TestMain of a package whose tests share one server: it starts the server, sets shared, runs the tests,
// fails them if they leave goroutines behind, stops the server and exits. Goroutines that run when the tests begin are not theirs:
// the server has a goroutine that waits for its process to end. What go-redis logs about servers that tests stop is shown with -v alone.
// In a child of such a package, shared is its parent's server.
func Main(m leaks.Tests, shared **Server) {
	if flag.Parse(); !testing.Verbose() {
		logging.Disable()
	}
	var stop func()
	var err error
	if *shared, stop, err = sharedServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ofMain = *shared
	// After failures a pool of go-redis dials once a second in the background, and notices that late that it was closed.
	code := leaks.Run(tests{m}, "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	stop()
	os.Exit(code)
}

// sharedVar tells children the port of the server that their parent's tests share.
const sharedVar = "REDISTEST_SHARED"

// sharedServer starts the server, or finds that of the parent: a server takes longer to start than most children live.
func sharedServer() (s *Server, stop func(), err error) {
	if port, err := strconv.Atoi(os.Getenv(sharedVar)); err == nil && InChild() {
		return &Server{node: &node{port: port}}, func() {}, nil
	}
	if s, stop, err = StartForMain(); err == nil {
		err = os.Setenv(sharedVar, strconv.Itoa(s.Port()))
	}
	return s, stop, err
}

// ofMain is the shared server of the package.
var ofMain *Server

// tests end with what they have started in common.
type tests struct{ leaks.Tests }

func (t tests) Run() (code int) {
	code = t.Tests.Run()
	if err := started.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// ReadLog reads what a child process wrote, an event on each line, whose fields are separated by spaces. There is none if the child
// was killed before it could write one.
func ReadLog[E any](tb testing.TB, path string, fields func(*E) []any) (all []E) {
	tb.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e E
		into := fields(&e)
		if n, err := fmt.Sscan(lines.Text(), into...); err != nil || n != len(into) {
			tb.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		all = append(all, e)
	}
	return all
}

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
