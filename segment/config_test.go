package segment

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestNewNamesEveryFieldThatIsOutOfRange(t *testing.T) {
	t.Parallel()
	var none *redis.Client
	_, err := New(none, Config{Prefix: "a{b", Segments: 65, TTL: 60, RedisTimeout: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"rdb", "Prefix", "Segments", "TTL: 60ns", "RedisTimeout"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	if _, err := New(shared.Client(t), Config{TTL: -1, Segments: 64, RedisTimeout: time.Second}); err != nil {
		t.Error(err)
	}
}
