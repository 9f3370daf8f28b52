package redistest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/internal/testing/leaks"
)

// Main is the TestMain of a package whose tests share one server: it starts the server, sets shared, runs the tests,
// fails them if they leave goroutines behind, stops the server and exits. Goroutines that run when the tests begin are not theirs:
// the server has a goroutine that waits for its process to end. What go-redis logs about servers that tests stop is shown with -v alone.
func Main(m *testing.M, shared **Server) {
	if flag.Parse(); !testing.Verbose() {
		logging.Disable()
	}
	s, stop, err := StartForMain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	*shared = s
	// After failures a pool of go-redis dials once a second in the background, and notices that late that it was closed.
	code := leaks.Run(m, "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	stop()
	os.Exit(code)
}
