package consistency

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	goleak.VerifyTestMain(m)
}
