package cacheguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A primary that froze, was cut off or was restarted takes itself for one until it is told otherwise.
func TestWhoHasNotHeardOfANewPrimaryReadsFromTheOldOne(t *testing.T) {
	t.Parallel()
	for _, local := range []LocalConfig{{}, {MaxEntries: 100, TTL: time.Hour, MaxLag: time.Second}} {
		t.Run(fmt.Sprintf("with a tier of %d", local.MaxEntries), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			old := redistest.Start(t)
			successor := redistest.StartReplica(t, old)
			f := newFleetOn(t, successor.Client(t), Config{TTL: time.Hour, Local: local}, old.Client(t), successor.Client(t))
			read := func() string { return mustGet(t, f.guards[0], "k", returns("new")) }
			mustGet(t, f.guards[0], "k", returns("old"))
			redistest.Await(t, "the replica has it", func() bool { return f.exists(f.value("k")) })

			expect.Equal(t, "error", successor.Client(t).ReplicaOf(ctx, "no", "one").Err(), nil)
			mustInvalidate(t, f.guards[1], "k")
			expect.Equal(t, "read from the old primary", read(), "old")

			expect.Equal(t, "error", old.Client(t).ReplicaOf(ctx, "127.0.0.1", fmt.Sprint(successor.Port())).Err(), nil)
			redistest.Await(t, "what the new one has", func() bool { return read() == "new" })
		})
	}
}
