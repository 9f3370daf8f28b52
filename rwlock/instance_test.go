package rwlock

import (
	"testing"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
)

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
