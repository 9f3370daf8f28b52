package bench

import (
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// shared is the one server that everything is measured on.
var shared *redistest.Server

func TestMain(m *testing.M) {
	distance.Main()
	s, stop, err := redistest.StartForMain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = s
	logging.Disable() // of go-redis, which reports every connection that is refused in an outage
	code := m.Run()
	stop()
	os.Exit(code)
}
