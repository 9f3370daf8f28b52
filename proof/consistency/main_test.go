package consistency

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	leaks.Main(m)
}
