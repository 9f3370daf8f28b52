package bench

import (
	"fmt"
	"os"
	"testing"

	"github.com/cacheguard/go/internal/redistest"
)

// shared is the one server that everybody is measured on.
var shared *redistest.Server

func TestMain(m *testing.M) {
	s, stop, err := redistest.StartForMain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = s
	code := m.Run()
	stop()
	os.Exit(code)
}
