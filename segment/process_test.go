package segment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

const crashSegments = 7

// Each child moves units about, takes two at a time and says so, and is killed at any moment. Only the units that it took and
// did not report are lost.
func TestAKilledTakerLosesNoMoreThanTheTakeItWasIn(t *testing.T) {
	t.Parallel()
	if redistest.IsChild(t) {
		moveTakeAndTell(t)
		return
	}
	const units, kills, takes = 1 << 30, 4, 20 // more units than children can take
	c := newStock(t, shared.Client(t), crashSegments, units)
	told := int64(0)
	for range kills {
		child := redistest.Child(t, t.Name(), "SEGMENT_ADDR="+shared.Addr(), "SEGMENT_PREFIX="+c.cfg.Prefix)
		for range takes {
			told += heard(t, child)
		}
		child.Kill()
		for more := int64(1); more > 0; told += more {
			more = heard(t, child) // what it had said before it died
		}
	}
	left, err := c.Total(t.Context(), name)
	if lost := units - 2*told - left; err != nil || told < kills*takes || lost < 0 || lost > 2*kills {
		t.Fatalf("%d were taken and %d are left of %d, %v", 2*told, left, units, err)
	}
	ok(t, c.Take(t.Context(), name, left))
}

// heard is 1 if the child says that it took, and 0 when it has ended.
func heard(t *testing.T, child *redistest.Process) int64 {
	t.Helper()
	line, err := child.ReadLine(t.Context())
	if errors.Is(err, io.EOF) {
		return 0
	}
	if err != nil || line != "taken" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return 1
}

func moveTakeAndTell(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("SEGMENT_ADDR")})
	defer rdb.Close()
	c := newCounter(t, rdb, Config{Prefix: os.Getenv("SEGMENT_PREFIX"), Segments: crashSegments})
	for i := 0; ; i++ {
		shift(t, c, i%crashSegments, (i+1)%crashSegments, 1000)
		ok(t, c.Take(t.Context(), name, 2))
		fmt.Println("taken")
	}
}
