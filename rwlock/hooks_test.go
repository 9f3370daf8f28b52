package rwlock

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
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
