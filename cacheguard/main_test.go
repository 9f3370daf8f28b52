package cacheguard

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cacheguard/go/internal/redistest"
)

// shared is the server of the tests that neither break it nor look at its counters.
var shared *redistest.Server

func TestMain(m *testing.M) {
	s, stop, err := redistest.StartForMain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = s
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		stop()
		os.Exit(code)
	}))
}

// SharedAddr is the address of the shared server, for the examples.
func SharedAddr() string { return shared.Addr() }
