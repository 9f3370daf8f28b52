package segment

import (
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

// Each child takes two units at a time and says so, and is killed at any moment. What it had taken and could not say is
// lost, and nothing else.
func TestAKilledTakerLosesNoMoreThanTheTakeItWasIn(t *testing.T) {
	t.Parallel()
	const units, kills, takes = 200, 4, 20
	if redistest.IsChild(t) {
		takeAndTell(t)
		return
	}
	c := newStock(t, shared.Client(t), 7, units)
	told := int64(0)
	for range kills {
		child := redistest.Child(t, t.Name(), "SEGMENT_ADDR="+shared.Addr(), "SEGMENT_PREFIX="+c.cfg.Prefix)
		for range takes {
			if _, err := child.ReadLine(t.Context()); err != nil {
				t.Fatal(err)
			}
			told++
		}
		child.Kill()
		for { // what it had said before it died
			if _, err := child.ReadLine(t.Context()); err != nil {
				break
			}
			told++
		}
	}
	left, err := c.Total(t.Context(), name)
	if lost := units - 2*told - left; err != nil || lost < 0 || lost > 2*kills {
		t.Errorf("%d were taken and %d are left of %d, %v", 2*told, left, units, err)
	}
	if left > 0 {
		ok(t, c.Take(t.Context(), name, left))
	}
}

func takeAndTell(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("SEGMENT_ADDR")})
	defer rdb.Close()
	c := newCounter(t, rdb, Config{Prefix: os.Getenv("SEGMENT_PREFIX"), Segments: 7})
	for c.Take(t.Context(), name, 2) == nil {
		fmt.Println("taken")
	}
}
