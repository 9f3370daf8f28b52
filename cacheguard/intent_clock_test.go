package cacheguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// The server's clock is set back by an hour when the writer has died: its intent seems to last an hour longer.
func TestADeadWritersIntentEndsThoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{LeaseTTL: 100 * time.Millisecond, WaitTimeout: time.Minute}) // one load is in time
	ctx, db := context.Background(), newRow("v")
	now, err := f.redis.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	f.redis.HSet(ctx, f.intent("k"), "writer:dead", fmt.Sprint(now.Add(time.Hour).UnixMilli(), " ", 200))
	f.redis.Expire(ctx, f.intent("k"), time.Hour)
	redistest.Await(t, "loads are stored again", func() bool {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _ = Get(short, f.guards[0], "k", db.load) // may wait in vain
		return f.exists(f.value("k"))
	})
}
