package rwlock

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestHooksGetReadersAndWriters(t *testing.T) {
	t.Parallel()
	var locks, unlocks, refused atomic.Int64
	k, err := New(shared.Client(t), Config{Prefix: t.Name(), Hooks: Hooks{
		OnLock: func(_ string, _ time.Duration, err error) {
			if locks.Add(1); err != nil {
				refused.Add(1)
			}
		},
		OnUnlock: func(string, time.Duration, error) { unlocks.Add(1) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	err = k.RDo(t.Context(), "k", func(ctx context.Context, _ *Lease) error {
		_, _ = k.TryLock(ctx, "k") // it is refused
		return nil
	})
	if err != nil || locks.Load() != 2 || refused.Load() != 1 || unlocks.Load() != 1 {
		t.Errorf("%v; %d locks, %d refused, %d unlocks", err, locks.Load(), refused.Load(), unlocks.Load())
	}
}

func TestInspectSaysWhichInstanceWrites(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{"shop-1": {Instance: "shop-1"}, config.DefaultInstance(): {}} {
		f := newFleet(t, standalone(t), 1, cfg)
		lease, err := f.lockers[0].Lock(t.Context(), "k")
		expect.ErrorIs(t, err)
		info, err := f.lockers[0].Inspect(t.Context(), "k")
		expect.ErrorIs(t, err)
		expect.Equal(t, "instance", info.Instance, want)
		expect.ErrorIs(t, lease.Unlock(t.Context()))
	}
}
