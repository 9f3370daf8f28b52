package mutex

import (
	"strings"
	"testing"

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
