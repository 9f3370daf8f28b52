package mutex

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/testing/expect"
)

func mention(t *testing.T, err error, field string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), field) {
		t.Errorf("%v does not mention %s", err, field)
	}
}

func TestANilLockerSaysSo(t *testing.T) {
	t.Parallel()
	var k *Locker
	_, err := k.Inspect(t.Context(), "k")
	expect.ErrorIs(t, err, lifecycle.ErrNilLocker)
	var l *Lease
	expect.Equal(t, "fence", l.Fence(), 0)
	var q *Quorum
	_, err = q.Lock(t.Context(), "k")
	expect.ErrorIs(t, err, lifecycle.ErrNilLocker)
	expect.ErrorIs(t, q.Close())
	if err := new(Quorum).Do(t.Context(), "a", nil); err == nil || !strings.Contains(err.Error(), "f is nil") {
		t.Error(err)
	}
}

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
