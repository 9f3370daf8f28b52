package mutex

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestInspectSaysWhichInstanceHoldsALock(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{Instance: "shop-1"})
	lease := f.lock(0, "k")
	expect.Equal(t, "instance", must2(f.lockers[0].Inspect(t.Context(), "k")).Instance, "shop-1")
	if !strings.HasSuffix(lease.Token(), "@shop-1") {
		t.Error(lease.Token())
	}
	f.unlock(lease)
	lease, err := f.lockers[0].Lock(WithOwner(t.Context()), "k")
	expect.ErrorIs(t, err)
	expect.Equal(t, "instance of an owner", must2(f.lockers[0].Inspect(t.Context(), "k")).Instance, config.DefaultInstance())
	f.unlock(lease)
	expect.Equal(t, "instance of a free lock", must2(f.lockers[0].Inspect(t.Context(), "k")).Instance, "")
}
