package wake_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cacheguard/go/internal/redistest"
)

// shared is for the tests that neither count nor break anything in the server itself.
var shared *redistest.Server

func TestMain(m *testing.M) {
	s, stop, err := redistest.StartForMain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = s
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) { stop(); os.Exit(code) }))
}
