package send

import (
	"testing"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// shared is for the tests that neither count nor break anything in the server itself.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }
