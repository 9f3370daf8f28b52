package detach

import (
	"testing"

	"github.com/cacheguard/go/internal/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }
