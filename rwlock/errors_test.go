package rwlock

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestANameThatIsTooLongIsRefusedAndTheErrorSaysTheLimit(t *testing.T) {
	t.Parallel()
	k := newFleet(t, standalone(t), 1, Config{}).lockers[0]
	_, err := k.TryRLock(t.Context(), strings.Repeat("x", 65_537))
	if err == nil || !strings.Contains(err.Error(), "65537 bytes, more than 65536") {
		t.Error(err)
	}
	l, err := k.TryRLock(t.Context(), strings.Repeat("x", 65_536))
	if err != nil {
		t.Fatal(err)
	}
	expect.ErrorIs(t, l.Unlock(t.Context()), nil)
}
