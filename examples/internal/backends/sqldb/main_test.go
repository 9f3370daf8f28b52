package sqldb

import (
	"testing"

	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
